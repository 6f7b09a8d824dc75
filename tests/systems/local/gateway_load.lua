-- What wrk saw, as one line of JSON: transport errors, and answers by status.
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() answers = {} end
function response(status)
  local key = tostring(status)
  answers[key] = (answers[key] or 0) + 1
end
function done(summary)
  local found = {}
  for _, thread in ipairs(threads) do
    for status, count in pairs(thread:get("answers")) do found[status] = (found[status] or 0) + count end
  end
  local parts = {}
  for status, count in pairs(found) do table.insert(parts, string.format('"%s": %d', status, count)) end
  local e = summary.errors
  io.write(string.format('{"requests": %d, "errors": %d, "answers": {%s}}\n',
    summary.requests, e.connect + e.read + e.write + e.timeout, table.concat(parts, ", ")))
end
