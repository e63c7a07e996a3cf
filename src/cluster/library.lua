#!lua name=uniqcrawl_1
-- What a crawl asks of its cluster, each step atomic on one slot. Every function may be sent a second time when
-- its answer was lost: the second call changes nothing and answers the same.
--
-- KEYS[1] is the start of all names of a partition: the prefix of the crawl and the tag of the slot.
--
-- Postings lie in buckets, strings of entries of one width: the rest of a key, then the number of a document (5
-- bytes). Documents lie in hashes of 16, each with a letter for its state in front:
--   p deadline   pending: announced, not decided
--   m deadline   the same, marked: an older one was announced since, so that it must look again
--   g            its deadline has passed: whoever looked took no notice of it
--   l version row   live; the version has 4 bytes
--   k change (16 bytes) live...   locked by a change of several documents

local ID = 5
local MATCHES_MAX = 64

local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Where an entry begins with some bytes, from a place on; nil if nowhere.
local function find(bucket, bytes, width, from)
  local at = string.find(bucket, bytes, from, true)
  while at and (at - 1) % width ~= 0 do
    at = string.find(bucket, bytes, at + 1, true)
  end
  return at
end

-- ARGV: bucket, rest, document or '' to look only, ... Adds entries, and answers for each what was there: of
-- fingerprints (bucket n...) all, of other keys the documents of the same key.
local function post(keys, args)
  local answers = {}
  for i = 1, #args, 3 do
    local name, rest, id = keys[1] .. args[i], args[i + 1], args[i + 2]
    local width = #rest + ID
    local bucket = redis.call('GET', name) or ''
    if string.byte(args[i]) == 110 then
      if id ~= '' and not find(bucket, rest .. id, width, 1) then
        redis.call('APPEND', name, rest .. id)
      end
      answers[#answers + 1] = bucket
    else
      local found, mine = {}, false
      local at = find(bucket, rest, width, 1)
      while at and #found < MATCHES_MAX do
        local other = string.sub(bucket, at + #rest, at + width - 1)
        if other == id then mine = true else found[#found + 1] = other end
        at = find(bucket, rest, width, at + width)
      end
      if id ~= '' and not mine and #found < MATCHES_MAX then
        redis.call('APPEND', name, rest .. id)
      end
      answers[#answers + 1] = table.concat(found)
    end
  end
  return answers
end

-- ARGV: bucket, rest, document, ... Removes entries.
local function unpost(keys, args)
  for i = 1, #args, 3 do
    local name, entry = keys[1] .. args[i], args[i + 1] .. args[i + 2]
    local bucket = redis.call('GET', name) or ''
    local at = find(bucket, entry, #entry, 1)
    if at then
      local left = string.sub(bucket, 1, at - 1) .. string.sub(bucket, at + #entry)
      if left == '' then redis.call('DEL', name) else redis.call('SET', name, left) end
    end
  end
  return 1
end

-- ARGV: ms until the deadline, then hash, field, ... Announces documents.
local function announce(keys, args)
  local deadline = now() + tonumber(args[1])
  for i = 2, #args, 2 do
    redis.call('HSETNX', keys[1] .. args[i], args[i + 1], 'p' .. string.format('%.0f', deadline))
  end
  return 1
end

-- ARGV: hash, field, how, ... Answers what is there. How: r to read; w for somebody newer, who waits for what is
-- pending; m for somebody older, who marks it and goes on.
local function look(keys, args)
  local answers, time = {}, now()
  for i = 1, #args, 3 do
    local name, field, how = keys[1] .. args[i], args[i + 1], args[i + 2]
    local value = redis.call('HGET', name, field) or ''
    local state = string.sub(value, 1, 1)
    if state == 'p' or state == 'm' then
      if how == 'r' then
        value = 'p'
      elseif tonumber(string.sub(value, 2)) < time then
        redis.call('HSET', name, field, 'g')
        value = 'g'
      elseif how == 'w' then
        value = 'w'
      else
        redis.call('HSET', name, field, 'm' .. string.sub(value, 2))
        value = 'n'
      end
    end
    answers[#answers + 1] = value
  end
  return answers
end

-- ARGV: ms until the deadline, then hash, field, ... Takes marks off, before another look.
local function renew(keys, args)
  local deadline, answers = 'p' .. string.format('%.0f', now() + tonumber(args[1])), {}
  for i = 2, #args, 2 do
    local name, field = keys[1] .. args[i], args[i + 1]
    local state = string.sub(redis.call('HGET', name, field) or '', 1, 1)
    if state == 'p' or state == 'm' then
      redis.call('HSET', name, field, deadline)
      answers[#answers + 1] = '+'
    else
      answers[#answers + 1] = 'g'
    end
  end
  return answers
end

-- ARGV: hash, field, row, ... Makes pending documents live. Answers + if it is, m if it is marked, g if it is late.
local function settle(keys, args)
  local answers = {}
  for i = 1, #args, 3 do
    local name, field, row = keys[1] .. args[i], args[i + 1], args[i + 2]
    local state = string.sub(redis.call('HGET', name, field) or 'g', 1, 1)
    if state == 'p' then
      redis.call('HSET', name, field, 'l' .. struct.pack('>I4', 1) .. row)
      state = '+'
    elseif state == 'l' or state == 'k' then
      state = '+'
    end
    answers[#answers + 1] = state
  end
  return answers
end

-- ARGV: hash, field, ... Forgets what was announced and is not wanted.
local function withdraw(keys, args)
  for i = 1, #args, 2 do
    local name, field = keys[1] .. args[i], args[i + 1]
    local state = string.sub(redis.call('HGET', name, field) or 'l', 1, 1)
    if state ~= 'l' and state ~= 'k' then redis.call('HDEL', name, field) end
  end
  return 1
end

-- The row of the version after this one; of an empty row, nothing.
local function put(name, field, version, row)
  if row == '' then
    redis.call('HDEL', name, field)
  else
    redis.call('HSET', name, field, 'l' .. struct.pack('>I4', struct.unpack('>I4', version) + 1) .. row)
  end
end

-- ARGV: hash, field, version, row or '', ... Writes live documents if they are of that version.
local function write(keys, args)
  local answers = {}
  for i = 1, #args, 4 do
    local name, field, version, row = keys[1] .. args[i], args[i + 1], args[i + 2], args[i + 3]
    local value = redis.call('HGET', name, field) or ''
    local state, its = string.sub(value, 1, 1), string.sub(value, 2, 5)
    local answer = '-'
    if state == 'l' and its == version then
      put(name, field, version, row)
      answer = '+'
    elseif row == '' and value == '' then
      answer = '+'
    elseif state == 'l' and string.sub(value, 6) == row
      and struct.unpack('>I4', its) == struct.unpack('>I4', version) + 1 then
      answer = '+'
    end
    answers[#answers + 1] = answer
  end
  return answers
end

-- ARGV: change, then hash, field, version, ... Locks live documents for a change of several; of version 0, one that
-- is not there yet, or pending.
local function lock(keys, args)
  local answers, change = {}, args[1]
  for i = 2, #args, 3 do
    local name, field, version = keys[1] .. args[i], args[i + 1], args[i + 2]
    local value = redis.call('HGET', name, field) or ''
    local answer = '-'
    if string.sub(value, 1, 1) == 'l' and string.sub(value, 2, 5) == version then
      redis.call('HSET', name, field, 'k' .. change .. value)
      answer = '+'
    elseif version == string.rep('\0', 4) and (value == '' or string.sub(value, 1, 1) == 'p') then
      redis.call('HSET', name, field, 'k' .. change .. 'l' .. version)
      answer = '+'
    elseif string.sub(value, 1, 17) == 'k' .. change then
      answer = '+'
    end
    answers[#answers + 1] = answer
  end
  return answers
end

-- ARGV: change, then hash, field, row or '', keep (1 to leave the document as it was), ... Ends locks.
local function unlock(keys, args)
  local change = 'k' .. args[1]
  for i = 2, #args, 4 do
    local name, field, row, keep = keys[1] .. args[i], args[i + 1], args[i + 2], args[i + 3]
    local value = redis.call('HGET', name, field) or ''
    if string.sub(value, 1, 17) == change then
      if keep ~= '1' then
        put(name, field, string.sub(value, 19, 22), row)
      elseif #value == 22 then
        redis.call('HDEL', name, field)
      else
        redis.call('HSET', name, field, string.sub(value, 18))
      end
    end
  end
  return 1
end

-- ARGV: name, what, ms or rows. Begins (u), decides (c with its rows, a for nothing, x for nothing if it is late)
-- or reads (r) a change of several documents. Answers its state: u, c with its rows, a.
local function change(keys, args)
  local name, what = keys[1] .. args[1], args[2]
  if what == 'u' then
    redis.call('SET', name, 'u' .. string.format('%.0f', now() + tonumber(args[3])), 'NX')
  end
  local value = redis.call('GET', name) or 'a'
  if string.sub(value, 1, 1) == 'u' then
    if what == 'c' then
      value = 'c' .. args[3]
      redis.call('SET', name, value)
    elseif what == 'a' or what == 'x' and tonumber(string.sub(value, 2)) < now() then
      value = 'a'
      redis.call('DEL', name)
    end
  end
  return value
end

redis.register_function('uniqcrawl_1_post', post)
redis.register_function('uniqcrawl_1_unpost', unpost)
redis.register_function('uniqcrawl_1_announce', announce)
redis.register_function('uniqcrawl_1_look', look)
redis.register_function('uniqcrawl_1_renew', renew)
redis.register_function('uniqcrawl_1_settle', settle)
redis.register_function('uniqcrawl_1_withdraw', withdraw)
redis.register_function('uniqcrawl_1_write', write)
redis.register_function('uniqcrawl_1_lock', lock)
redis.register_function('uniqcrawl_1_unlock', unlock)
redis.register_function('uniqcrawl_1_change', change)
