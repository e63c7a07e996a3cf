-- Sends the lines of REQUESTS.0, REQUESTS.1, ... (one file a thread) as articles, from the start again when
-- they are all sent, and prints what came as a row of a table.
local threads = {}

function setup(thread)
  thread:set("number", #threads)
  table.insert(threads, thread)
end

function init()
  file = assert(io.open(os.getenv("REQUESTS") .. "." .. number))
  headers = { ["Content-Type"] = "application/json" }
  good, duplicate, other, again = 0, 0, 0, 0
end

function request()
  local line = file:read("*l")
  if not line then
    again = again + 1
    file:seek("set")
    line = file:read("*l")
  end
  return wrk.format("POST", "/docId/getDocId", headers, line)
end

function response(status, _, body)
  if status == 200 and body:find('"good"', 1, true) then
    good = good + 1
  elseif status == 200 and body:find('"duplicate"', 1, true) then
    duplicate = duplicate + 1
  else
    other = other + 1
  end
end

function done(summary, latency)
  local sums = { good = 0, duplicate = 0, other = 0, again = 0 }
  for _, thread in ipairs(threads) do
    for name in pairs(sums) do sums[name] = sums[name] + thread:get(name) end
  end
  local e = summary.errors
  io.write(string.format(
    "| %s | %.0f | %.2f ms | %.2f ms | %.0f ms | %d | %d | %d | %d |\n",
    os.getenv("NAME"), summary.requests / summary.duration * 1e6, latency:percentile(50) / 1000,
    latency:percentile(99) / 1000, latency.max / 1000, sums.good, sums.duplicate,
    sums.other + e.connect + e.read + e.write + e.timeout, sums.again))
end
