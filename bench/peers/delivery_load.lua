-- Counts answers by the version that gave them and their status, and says so in one line of JSON at the end.
-- THINK: milliseconds that each connection waits before its next request.
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() answers = {} end
function response(status, headers)
  local key = (headers["x-version"] or "none") .. " " .. status
  answers[key] = (answers[key] or 0) + 1
end
local think = tonumber(os.getenv("THINK") or "")
if think then
  function delay() return think end
end
function done(summary)
  local parts = {}
  for _, thread in ipairs(threads) do
    for key, count in pairs(thread:get("answers")) do table.insert(parts, string.format('"%s": %d', key, count)) end
  end
  local e = summary.errors
  io.write(string.format('{"broken": %d, "answers": {%s}}\n',
    e.connect + e.read + e.write + e.timeout, table.concat(parts, ", ")))
end
