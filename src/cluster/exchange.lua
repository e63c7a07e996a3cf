#!lua name=uniqcrawl_exchange_2
-- What workers that crawl together ask of their cluster, each step atomic on one slot. Every function may be sent a
-- second time when its answer was lost: the second call does no harm.
--
-- KEYS[1] is the start of all names of a partition: the prefix of the crawl and the tag of the slot. A shard has the
-- partition of its number; from the 1,025th on its number stands behind the tag, as several share one. Its lease
-- (hash `lease`: worker, fence, until, quiet, version) and the links that others have found for it (stream `links`) so
-- lie in one slot. Partition 0 has the workers as well (hash `workers`).
-- The turn of an IP address is a string: the moment of the next request, then `token:until` of those under way. Who
-- waits for it is another string: `shard:due` of each, in the order in which they came.

local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local function text(number)
  return string.format('%.0f', number)
end

-- Whether a worker holds the lease by that fence.
local function holds(name, worker, fence)
  local row = redis.call('HMGET', name, 'worker', 'fence', 'until')
  return row[1] == worker and row[2] == fence and tonumber(row[3] or '0') > now()
end

-- ARGV: worker, ms. Answers the fence, or '' if somebody else holds it; whether it was held before; by whom it is.
-- A fence is larger than all before it, also when these are forgotten.
local function lease_take(keys, args)
  local name, worker, time = keys[1] .. 'lease', args[1], now()
  local row = redis.call('HMGET', name, 'worker', 'fence', 'until')
  if row[1] and row[1] ~= worker and tonumber(row[3] or '0') > time then return { '', 1, row[1] } end
  local fence = text(math.max(tonumber(row[2] or '0') + 1, time))
  redis.call('HSET', name, 'worker', worker, 'fence', fence, 'until', text(time + tonumber(args[2])), 'quiet', '0')
  redis.call('HINCRBY', name, 'version', 1)
  return { fence, row[2] and 1 or 0, worker }
end

-- ARGV: worker, fence, ms. Answers 1 if the lease goes on.
local function lease_renew(keys, args)
  local name = keys[1] .. 'lease'
  if not holds(name, args[1], args[2]) then return 0 end
  redis.call('HSET', name, 'until', text(now() + tonumber(args[3])))
  return 1
end

-- ARGV: worker, fence. Gives a lease back.
local function lease_release(keys, args)
  local name = keys[1] .. 'lease'
  if not holds(name, args[1], args[2]) then return 0 end
  redis.call('HSET', name, 'until', '0')
  return 1
end

-- ARGV: worker, fence, 1 if the shard has nothing to do.
local function lease_tell(keys, args)
  local name = keys[1] .. 'lease'
  if not holds(name, args[1], args[2]) then return 0 end
  if redis.call('HGET', name, 'quiet') ~= args[3] then
    redis.call('HSET', name, 'quiet', args[3])
    redis.call('HINCRBY', name, 'version', 1)
  end
  return 1
end

-- Answers who holds the shard ('' for nobody), whether it is quiet, how often that was told, links that wait.
local function lease_look(keys)
  local row = redis.call('HMGET', keys[1] .. 'lease', 'worker', 'until', 'quiet', 'version')
  local holder = tonumber(row[2] or '0') > now() and row[1] or ''
  return { holder, row[3] == '1' and 1 or 0, tonumber(row[4] or '0'), redis.call('XLEN', keys[1] .. 'links') }
end

-- ARGV: most links that wait, then links. Answers 1 if they were added, 0 if there are too many.
local function links_send(keys, args)
  local name = keys[1] .. 'links'
  if redis.call('XLEN', name) >= tonumber(args[1]) then return 0 end
  for i = 2, #args do
    redis.call('XADD', name, '*', 'l', args[i])
  end
  return 1
end

-- ARGV: worker, fence, id. Removes links up to that id, if the worker holds the shard.
local function links_trim(keys, args)
  if not holds(keys[1] .. 'lease', args[1], args[2]) then return 0 end
  local time, number = string.match(args[3], '^(%d+)-(%d+)$')
  if time then
    redis.call('XTRIM', keys[1] .. 'links', 'MINID', time .. '-' .. text(tonumber(number) + 1))
  end
  return 1
end

-- ARGV: worker, ms for which it is alive, 0 if it leaves. Answers all that are.
local function worker_beat(keys, args)
  local name, time = keys[1] .. 'workers', now()
  local alive = {}
  if args[2] == '0' then
    redis.call('HDEL', name, args[1])
  else
    redis.call('HSET', name, args[1], text(time + tonumber(args[2])))
  end
  local all = redis.call('HGETALL', name)
  for i = 1, #all, 2 do
    if tonumber(all[i + 1]) > time then
      alive[#alive + 1] = all[i]
    else
      redis.call('HDEL', name, all[i])
    end
  end
  return alive
end

-- The parts of a turn: when the next request may be sent, and who has one under way.
local function parts(value, time)
  local next, held = 0, {}
  for part in string.gmatch(value or '', '[^;]+') do
    local token, till = string.match(part, '^(%x+):(%d+)$')
    if not token then
      next = tonumber(part)
    elseif tonumber(till) > time then
      held[#held + 1] = { token, tonumber(till) }
    end
  end
  return next, held
end

local function put(name, next, held, time)
  local value, last = text(next), next
  for _, one in ipairs(held) do
    value = value .. ';' .. one[1] .. ':' .. text(one[2])
    last = math.max(last, one[2])
  end
  redis.call('SET', name, value, 'PX', text(math.max(last - time, 1)))
end

-- Takes a turn from who holds it. Tells whether anybody does.
local function drop(name, next, held, token, time)
  for i, one in ipairs(held) do
    if one[1] == token then
      table.remove(held, i)
      put(name, next, held, time)
      return true
    end
  end
  return false
end

-- Shards that wait for an address at most; what is beyond asks without a place.
local WAITING_MAX = 64

-- Least time between two who are told to ask.
local STEP = 20

-- Who is late by so many ms is not waited for, but keeps its place; after so many, it has none any more.
local LATE = 200
local GONE = 60000

local function read_waiting(name, time)
  local all = {}
  for by, due in string.gmatch(redis.call('GET', name) or '', '(%d+):(%d+)') do
    if tonumber(due) + GONE > time then all[#all + 1] = { by, tonumber(due) } end
  end
  return all
end

local function put_waiting(name, all, time)
  local value, last = {}, time
  for i, one in ipairs(all) do
    value[i] = one[1] .. ':' .. text(one[2])
    last = math.max(last, one[2])
  end
  if #value == 0 then
    redis.call('DEL', name)
  else
    redis.call('SET', name, table.concat(value, ';'), 'PX', text(last + GONE - time))
  end
end

-- ARGV: name, token, ms after which it ends by itself, ms between requests, most under way, shard. Answers 0 for the
-- turn, or the ms to wait. Of those who ask when they were told to, the one that waits longest is the next.
local function turn_take(keys, args)
  local name, token, time = keys[1] .. args[1], args[2], now()
  local gap, most, by = tonumber(args[4]), tonumber(args[5]), args[6]
  local next, held = parts(redis.call('GET', name), time)
  -- Sent again: whether another request came since is not known, so that it has to be its turn once more.
  drop(name, next, held, token, time)
  local of_waiting = name .. 'q'
  local all, before, own = read_waiting(of_waiting, time), 0, nil
  local each, due = math.max(gap, STEP), math.max(next, time + 1)
  for i, one in ipairs(all) do
    if one[1] == by then own = i break end
    if one[2] + LATE > time then
      -- Who comes later than the next turn but one loses nothing.
      if one[2] <= time + each then before = before + 1 end
      due = math.max(due, one[2] + each)
    end
  end
  if #held + before < most and next <= time then
    held[#held + 1] = { token, time + tonumber(args[3]) }
    put(name, time + gap, held, time)
    if own then
      table.remove(all, own)
      put_waiting(of_waiting, all, time)
    end
    return 0
  end
  if #held >= most then due = math.max(due, time + each) end
  if own or #all < WAITING_MAX then
    all[own or #all + 1] = { by, due }
    put_waiting(of_waiting, all, time)
  end
  return due - time
end

-- ARGV: name, token, ms after which it ends by itself. A turn that is held goes on. Answers 1 if it does.
local function turn_keep(keys, args)
  local name, time = keys[1] .. args[1], now()
  local next, held = parts(redis.call('GET', name), time)
  for _, one in ipairs(held) do
    if one[1] == args[2] then
      one[2] = time + tonumber(args[3])
      put(name, next, held, time)
      return 1
    end
  end
  return 0
end

-- ARGV: name, token, ms between requests. Gives a turn back, which only its owner can.
local function turn_end(keys, args)
  local name, token, time = keys[1] .. args[1], args[2], now()
  local next, held = parts(redis.call('GET', name), time)
  return drop(name, math.max(next, time + tonumber(args[3])), held, token, time) and 1 or 0
end

redis.register_function('uniqcrawl_3_lease_take', lease_take)
redis.register_function('uniqcrawl_3_lease_renew', lease_renew)
redis.register_function('uniqcrawl_3_lease_release', lease_release)
redis.register_function('uniqcrawl_3_lease_tell', lease_tell)
redis.register_function('uniqcrawl_3_lease_look', lease_look)
redis.register_function('uniqcrawl_3_links_send', links_send)
redis.register_function('uniqcrawl_3_links_trim', links_trim)
redis.register_function('uniqcrawl_3_worker_beat', worker_beat)
redis.register_function('uniqcrawl_3_turn_take', turn_take)
redis.register_function('uniqcrawl_3_turn_keep', turn_keep)
redis.register_function('uniqcrawl_3_turn_end', turn_end)
