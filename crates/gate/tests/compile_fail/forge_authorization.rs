//! A yes that no policy said.

fn forge(subject: gate::Granted, record: model::event::DecisionRecord) -> gate::Authorization {
    gate::Authorization { subject, record }
}

fn main() {}
