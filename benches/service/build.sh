# To be sourced in the folder of the project: builds what the two scripts run, unless CRAWL and
# SERVICE name it, and makes the folder of their data.
if [ -z "${CRAWL:-}" ]; then
  cargo build --release --quiet
  CRAWL=target/release/crawl
fi
if [ -z "${SERVICE:-}" ]; then
  cargo build --release --quiet --manifest-path benches/service/Cargo.toml
  SERVICE=benches/service/target/release
fi
work=${WORK:-$(mktemp -d)}
mkdir -p "$work"
