# Turns titles into parts of addresses. Source this file, then call `slug TITLE`.

# Prints the title in lower case, with each run of other characters than letters and digits as one `-`, and
# none of them at either end.
slug() {
    slug_text=$(printf '%s' "$1" | tr '[:upper:]' '[:lower:]' | tr -c 'a-z0-9' '-')
    slug_text=${slug_text#-}
    slug_text=${slug_text%-}
    printf '%s\n' "$slug_text"
}
