#!lua name=uniqcrawl_3
-- What a crawl asks of its cluster, each step atomic on one slot. Every function may be sent a second time when
-- its answer was lost: the second call changes nothing and answers the same.
--
-- KEYS[1] is in a slot of the node that is asked. ARGV of most functions: arguments of the function, then for each
-- partition, all of this node: the start of its names (the prefix of the crawl and the tag of the slot), how many
-- steps follow, and the arguments of each. Answers come in the order of the steps.
--
-- Postings lie in fields of hashes, as entries of one width: the rest of a key, then the number of a document (5
-- bytes). Documents lie in hashes of 64, each with a letter for its state in front:
--   p deadline:by   pending: announced by a worker, not decided
--   m deadline:by   the same, marked: an older one was announced since, so that it must look again
--   g            its deadline has passed: whoever looked took no notice of it
--   l version row   live; the version has 4 bytes
--   k change (16 bytes) live...   locked by a change of several documents

local ID = 5
local NONE, ANNOUNCED = '\0\0\0\0', '\255\255\255\255'
local MATCHES_MAX = 64

-- Entries of fingerprints of the same first 16 bits: so many in a field; then so many in a string of its own; what
-- comes later lies in 16 hashes of 16 fields, by the next 8 bits. Of these only those are read whose bits are equal
-- but for one at most: of two fingerprints that differ by up to 3 bits, one rotation has the same first 16 bits and
-- no more than one other bit in the next 16.
local NEAR_MAX = 64
local NEAR_MORE = 448
local NEAR_WIDTH = 6 + ID
local NEAR_NONE = '\0\0\0\0\0\0\0\0\0\0\0'

-- Entries of other keys: 3 bytes of the key.
local REST = 3
local WIDTH = REST + ID

local function now()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

-- Does `work(base, i)` for each step, whose arguments begin at `i`, and answers with what it returns.
local function each(args, first, width, work)
  local answers, at = {}, first
  while at <= #args do
    local base, last = args[at], at + 1 + tonumber(args[at + 1]) * width
    for i = at + 2, last, width do answers[#answers + 1] = work(base, i) end
    at = last + 1
  end
  return answers
end

-- Where an entry begins with some bytes, from a place on; nil if nowhere.
local function find(entries, bytes, width, from)
  local at = string.find(entries, bytes, from, true)
  while at and (at - 1) % width ~= 0 do
    at = string.find(entries, bytes, at + 1, true)
  end
  return at
end

-- The hashes of a kind of keys grow by one at a time: which of `count` an entry is in.
local function hash_of(entry, count)
  if count == 1 then return 0 end
  local a, b, c = string.byte(entry, 1, REST)
  local key, level = a * 65536 + b * 256 + c, 1
  while level * 2 <= count do level = level * 2 end
  local at = key % (level * 2)
  if at >= count then at = at - level end
  return at
end

local function hash_name(base, kind, at)
  if at == 0 then return base .. kind end
  return base .. kind .. ':' .. at
end

-- How many hashes the kinds of keys of a partition have. Each has 6 bytes in one string: its name, and the number.
local function read_counts(base)
  local text, counts = redis.call('GET', base .. 'b') or '', {}
  for at = 1, #text, 6 do
    counts[string.sub(text, at, at + 2)] = struct.unpack('>I3', string.sub(text, at + 3, at + 5))
  end
  return counts
end

-- The same of one kind, of the string alone.
local function count_in(text, kind)
  local at = find(text, kind, 6, 1)
  return at and struct.unpack('>I3', text, at + 3) or 1
end

local function write_counts(base, counts)
  local text = {}
  for kind, count in pairs(counts) do text[#text + 1] = kind .. struct.pack('>I3', count) end
  table.sort(text)
  text = table.concat(text)
  redis.call('SET', base .. 'b', text)
  return text
end

-- Makes one more hash of a kind: half of the entries of one other go there.
local function split(base, kind, count)
  local level = 1
  while level * 2 <= count do level = level * 2 end
  local name, new = hash_name(base, kind, count - level), hash_name(base, kind, count)
  local all, stays, goes = redis.call('HGETALL', name), {}, {}
  for i = 1, #all, 2 do
    local stay, go = {}, {}
    for at = 1, #all[i + 1], WIDTH do
      local entry = string.sub(all[i + 1], at, at + WIDTH - 1)
      local to = hash_of(entry, count + 1) == count and go or stay
      to[#to + 1] = entry
    end
    for to, entries in pairs({ [stays] = stay, [goes] = go }) do
      if #entries > 0 then
        to[#to + 1] = all[i]
        to[#to + 1] = table.concat(entries)
      end
    end
  end
  redis.call('DEL', name)
  if #stays > 0 then redis.call('HSET', name, unpack(stays)) end
  if #goes > 0 then redis.call('HSET', new, unpack(goes)) end
end

-- A posting is one argument: kind (3 bytes), field (1), rest; of a document also how many hashes of its kind there
-- should be (3, not of fingerprints), and its number.
--
-- A fingerprint has a letter before its rest: w if more than one of the next bits may differ.
local function near_of(name, field, arg, found)
  local of_field = name .. ':' .. string.byte(field)
  local more = #found >= NEAR_MAX * NEAR_WIDTH and redis.call('GET', of_field) or ''
  return { of_field = of_field, entry = string.sub(arg, 6), more = more, iswide = string.byte(arg, 5) == 119,
    isfull = #more >= NEAR_MORE * NEAR_WIDTH }
end

-- The hash and the field by the next 8 bits.
local function deep_of(near)
  local byte = string.byte(near.entry)
  local high = math.floor(byte / 16)
  return near.of_field .. ':' .. high, byte % 16, high
end

-- Whatever of the next 8 bits differs by one at most, or all; first what has the same.
local function read_deep(near)
  local name, low, high = deep_of(near)
  if near.iswide then
    local all = { redis.call('HGET', name, low) or '' }
    for other = 0, 15 do
      local values = redis.call('HGETALL', near.of_field .. ':' .. other)
      for i = 1, #values, 2 do
        if other ~= high or tonumber(values[i]) ~= low then all[#all + 1] = values[i + 1] end
      end
    end
    return all
  end
  local all = redis.call('HMGET', name, low, bit.bxor(low, 1), bit.bxor(low, 2), bit.bxor(low, 4), bit.bxor(low, 8))
  for i = 1, 5 do all[i] = all[i] or '' end
  for i = 0, 3 do
    all[6 + i] = redis.call('HGET', near.of_field .. ':' .. bit.bxor(high, 2 ^ i), low) or ''
  end
  return all
end

local function post_near(base, arg)
  local sub, call = string.sub, redis.call
  local name, field, entry = base .. sub(arg, 1, 3), sub(arg, 4, 4), sub(arg, 6)
  local found = call('HGET', name, field) or ''
  local isnew = #entry == NEAR_WIDTH and not find(found, entry, NEAR_WIDTH, 1)
  if #found < NEAR_MAX * NEAR_WIDTH then
    if isnew then call('HSET', name, field, found .. entry) end
    return found
  end
  local near = near_of(name, field, arg, found)
  local deep = near.isfull and read_deep(near) or { '' }
  if isnew and not find(near.more, entry, NEAR_WIDTH, 1) and not find(deep[1], entry, NEAR_WIDTH, 1) then
    if near.isfull then
      local of_deep, low = deep_of(near)
      call('HSET', of_deep, low, deep[1] .. entry)
    else
      call('APPEND', near.of_field, entry)
    end
  end
  return found .. near.more .. table.concat(deep)
end

-- With the text of the counts of its partition, which is answered as well: it may be another one then.
local function post_equal(base, arg, counts)
  local sub, call = string.sub, redis.call
  local kind, field, rest, id = sub(arg, 1, 3), sub(arg, 4, 4), sub(arg, 5, 4 + REST), sub(arg, 8 + REST)
  local count = count_in(counts, kind)
  if id ~= '' and struct.unpack('>I3', arg, 5 + REST) > count then
    split(base, kind, count)
    count = count + 1
    local all = read_counts(base)
    all[kind] = count
    counts = write_counts(base, all)
  end
  local name = hash_name(base, kind, hash_of(rest, count))
  local entries = call('HGET', name, field) or ''
  local at = find(entries, rest, WIDTH, 1)
  if not at then
    if id ~= '' then call('HSET', name, field, entries .. rest .. id) end
    return '', counts
  end
  local found, mine = {}, false
  while at and #found < MATCHES_MAX do
    local other = sub(entries, at + REST, at + WIDTH - 1)
    if other == id then mine = true else found[#found + 1] = other end
    at = find(entries, rest, WIDTH, at + WIDTH)
  end
  if id ~= '' and not mine and #found < MATCHES_MAX then
    call('HSET', name, field, entries .. rest .. id)
  end
  return table.concat(found), counts
end

-- Steps of one argument: a posting. Adds those of documents, and answers for each what was there: of fingerprints
-- those that may be near, of other keys the documents of the same key.
local function post(keys, args)
  local base, counts, found
  return each(args, 1, 1, function(of, i)
    local arg = args[i]
    if string.byte(arg) == 110 then return post_near(of, arg) end
    if of ~= base then base, counts = of, redis.call('GET', of .. 'b') or '' end
    found, counts = post_equal(of, arg, counts)
    return found
  end)
end

local function without(entries, at, width)
  return string.sub(entries, 1, at - 1) .. string.sub(entries, at + width)
end

local function set_field(name, field, entries)
  if entries == '' then redis.call('HDEL', name, field) else redis.call('HSET', name, field, entries) end
end

local function set_string(name, entries)
  if entries == '' then redis.call('DEL', name) else redis.call('SET', name, entries) end
end

local function unpost_near(base, arg)
  local name, field = base .. string.sub(arg, 1, 3), string.sub(arg, 4, 4)
  local found = redis.call('HGET', name, field) or ''
  local near = near_of(name, field, arg, found)
  local entry, more = near.entry, near.more
  local at = find(found, entry, NEAR_WIDTH, 1)
  if at then
    if near.isfull then
      -- A string that is not full has no hashes behind it: no document takes the place.
      found = string.sub(found, 1, at - 1) .. NEAR_NONE .. string.sub(found, at + NEAR_WIDTH)
    else
      found = without(found, at, NEAR_WIDTH)
      if more ~= '' then
        -- A field that is not full has no string.
        found = found .. string.sub(more, -NEAR_WIDTH)
        set_string(near.of_field, string.sub(more, 1, -NEAR_WIDTH - 1))
      end
    end
    return set_field(name, field, found)
  end
  at = find(more, entry, NEAR_WIDTH, 1)
  if at and near.isfull then
    redis.call('SETRANGE', near.of_field, at - 1, NEAR_NONE)
  elseif at then
    set_string(near.of_field, without(more, at, NEAR_WIDTH))
  elseif near.isfull then
    local of_deep, low = deep_of(near)
    local deep = redis.call('HGET', of_deep, low) or ''
    at = find(deep, entry, NEAR_WIDTH, 1)
    if at then set_field(of_deep, low, without(deep, at, NEAR_WIDTH)) end
  end
end

-- Steps as those of post, each of a document. Removes postings.
local function unpost(keys, args)
  local base, counts
  return each(args, 1, 1, function(of, i)
    local arg = args[i]
    if string.byte(arg) == 110 then
      unpost_near(of, arg)
      return ''
    end
    if of ~= base then base, counts = of, read_counts(of) end
    local kind, field, rest = string.sub(arg, 1, 3), string.sub(arg, 4, 4), string.sub(arg, 5, 4 + REST)
    local name = hash_name(of, kind, hash_of(rest, counts[kind] or 1))
    local entries = redis.call('HGET', name, field) or ''
    local at = find(entries, rest .. string.sub(arg, 8 + REST), WIDTH, 1)
    if at then set_field(name, field, without(entries, at, WIDTH)) end
    return ''
  end)
end

-- Steps: kind, hash (n for a string of fingerprints). Answers with all entries of a hash, behind the letter of
-- their field; a string has its own. With the number of hashes in front.
local function entries(keys, args)
  return each(args, 1, 2, function(base, i)
    local kind, at = args[i], tonumber(args[i + 1])
    local count = read_counts(base)[kind] or 1
    local all, told = redis.call('HGETALL', hash_name(base, kind, at)), { struct.pack('>I3', count) }
    for j = 1, #all, 2 do
      local found = all[j + 1]
      if string.byte(kind) == 110 and #found >= NEAR_MAX * NEAR_WIDTH then
        local of_field = base .. kind .. ':' .. string.byte(all[j])
        local parts = { found, redis.call('GET', of_field) or '' }
        for high = 0, #parts[2] >= NEAR_MORE * NEAR_WIDTH and 15 or -1 do
          local deep = redis.call('HGETALL', of_field .. ':' .. high)
          for of_deep = 2, #deep, 2 do parts[#parts + 1] = deep[of_deep] end
        end
        found = table.concat(parts)
      end
      told[#told + 1] = all[j] .. struct.pack('>I4', #found) .. found
    end
    return table.concat(told)
  end)
end

local function deadline_of(value)
  return tonumber(string.match(value, '^.(%d+)'))
end

-- Whether a document is pending, and announced by a worker: a number may have been given twice, by a primary that
-- was lost and by its replica.
local function is_pending(value, by)
  local state = string.byte(value)
  return (state == 112 or state == 109) and string.sub(value, -#by - 1) == ':' .. by
end

-- ms until the deadline, worker; steps: hash, field. Announces documents. Answers + if the number is free.
local function announce(keys, args)
  local value = 'p' .. string.format('%.0f', now() + tonumber(args[1])) .. ':' .. args[2]
  return each(args, 3, 2, function(base, i)
    local name, field = base .. args[i], args[i + 1]
    if redis.call('HSETNX', name, field, value) == 1 then return '+' end
    return is_pending(redis.call('HGET', name, field) or '', args[2]) and '+' or '-'
  end)
end

-- Steps: hash, field. Answers what is there.
local function read(keys, args)
  return each(args, 1, 2, function(base, i)
    local value = redis.call('HGET', base .. args[i], args[i + 1]) or ''
    local state = string.byte(value)
    if state == 112 or state == 109 then return 'p' end
    return value
  end)
end

-- Steps: hash, field. Answers the states of documents without their rows: `p` with the ms that it has left, `g`,
-- `l`, `k` with its change, or nothing.
local function states(keys, args)
  local time = now()
  return each(args, 1, 2, function(base, i)
    local value = redis.call('HGET', base .. args[i], args[i + 1]) or ''
    local state = string.sub(value, 1, 1)
    if state == 'p' or state == 'm' then return 'p' .. string.format('%.0f', deadline_of(value) - time) end
    if state == 'k' then return string.sub(value, 1, 17) end
    return state
  end)
end

-- Steps: hash. Answers which documents of it are there: of each the number of its field, its letter and its version, 0
-- for one that is locked.
local function versions(keys, args)
  return each(args, 1, 1, function(base, i)
    local all, found = redis.call('HGETALL', base .. args[i]), {}
    for at = 1, #all, 2 do
      local state = string.byte(all[at + 1])
      if state == 108 or state == 107 then
        local version = state == 108 and string.sub(all[at + 1], 1, 5) or 'k' .. string.rep('\0', 4)
        found[#found + 1] = string.char(tonumber(all[at], 16)) .. version
      end
    end
    return table.concat(found)
  end)
end

-- Steps: hash. Answers how many live documents there are in it, locked ones among them.
local function lives(keys, args)
  return each(args, 1, 1, function(base, i)
    local count = 0
    for _, value in ipairs(redis.call('HVALS', base .. args[i])) do
      local state = string.byte(value)
      -- A lock alone has 22 bytes: of a document that is not there yet.
      if state == 108 or state == 107 and #value > 22 then count = count + 1 end
    end
    return string.format('%d', count)
  end)
end

-- Steps: hash, field, how. Answers what is there. How: w for somebody newer, who waits for what is pending; m for
-- somebody older, who marks it and goes on.
local function look(keys, args)
  local time = now()
  return each(args, 1, 3, function(base, i)
    local name, field, how = base .. args[i], args[i + 1], args[i + 2]
    local value = redis.call('HGET', name, field) or ''
    local state = string.byte(value)
    if state ~= 112 and state ~= 109 then return value end
    if how == 'r' then return 'p' end
    if deadline_of(value) < time then
      redis.call('HSET', name, field, 'g')
      return 'g'
    end
    if how == 'w' then return 'w' end
    redis.call('HSET', name, field, 'm' .. string.sub(value, 2))
    return 'n'
  end)
end

-- ms until the deadline, worker; steps: hash, field. Takes marks off, before another look.
local function renew(keys, args)
  local value = 'p' .. string.format('%.0f', now() + tonumber(args[1])) .. ':' .. args[2]
  return each(args, 3, 2, function(base, i)
    local name, field = base .. args[i], args[i + 1]
    if not is_pending(redis.call('HGET', name, field) or '', args[2]) then return 'g' end
    redis.call('HSET', name, field, value)
    return '+'
  end)
end

-- Worker; steps: hash, field, row. Makes pending documents live. Answers + if it is, m if it is marked, g if it is
-- late.
local function settle(keys, args)
  return each(args, 2, 3, function(base, i)
    local name, field, row = base .. args[i], args[i + 1], 'l' .. struct.pack('>I4', 1) .. args[i + 2]
    local value = redis.call('HGET', name, field) or ''
    if is_pending(value, args[1]) then
      if string.byte(value) == 109 then return 'm' end
      redis.call('HSET', name, field, row)
      return '+'
    end
    -- It was sent before, or is the document of somebody else.
    return (value == row or string.sub(value, 18) == row) and '+' or 'g'
  end)
end

-- Worker; steps: hash, field. Forgets what was announced and is not wanted. Answers + if nothing is there.
local function withdraw(keys, args)
  return each(args, 2, 2, function(base, i)
    local name, field = base .. args[i], args[i + 1]
    local value = redis.call('HGET', name, field) or ''
    local isgone = value == '' or value == 'g' or is_pending(value, args[1])
    if isgone then redis.call('HDEL', name, field) end
    return isgone and '+' or '-'
  end)
end

-- ms; steps: hash, field. Forgets what was announced and is past its deadline since so many ms. Answers + if it was.
local function expire(keys, args)
  local time = now() - tonumber(args[1])
  return each(args, 2, 2, function(base, i)
    local name, field = base .. args[i], args[i + 1]
    local value = redis.call('HGET', name, field) or ''
    local state = string.sub(value, 1, 1)
    if state == 'g' or (state == 'p' or state == 'm') and deadline_of(value) < time then
      redis.call('HDEL', name, field)
      return '+'
    end
    return '-'
  end)
end

-- The row of the version after this one; of an empty row, nothing.
local function put(name, field, version, row)
  if row == '' then
    redis.call('HDEL', name, field)
  else
    redis.call('HSET', name, field, 'l' .. struct.pack('>I4', struct.unpack('>I4', version) + 1) .. row)
  end
end

-- Steps: hash, field, version, row or ''. Writes live documents if they are of that version.
local function write(keys, args)
  return each(args, 1, 4, function(base, i)
    local name, field, version, row = base .. args[i], args[i + 1], args[i + 2], args[i + 3]
    local value = redis.call('HGET', name, field) or ''
    local state, its = string.sub(value, 1, 1), string.sub(value, 2, 5)
    if state == 'l' and its == version then
      put(name, field, version, row)
      return '+'
    end
    if row == '' and value == '' then return '+' end
    -- It was sent before; somebody may have locked the document since.
    if state == 'k' then value = string.sub(value, 18) end
    local done = 'l' .. struct.pack('>I4', struct.unpack('>I4', version) + 1) .. row
    return value == done and '+' or '-'
  end)
end

-- The change, worker; steps: hash, field, version. Locks live documents for a change of several; of version 0, one that
-- is not there yet; of the last version, one that the worker has announced and nobody has marked.
local function lock(keys, args)
  local change = args[1]
  return each(args, 3, 3, function(base, i)
    local name, field, version = base .. args[i], args[i + 1], args[i + 2]
    local value = redis.call('HGET', name, field) or ''
    if string.sub(value, 1, 1) == 'l' and string.sub(value, 2, 5) == version then
      redis.call('HSET', name, field, 'k' .. change .. value)
    elseif version == NONE and value == ''
      or version == ANNOUNCED and string.byte(value) == 112 and is_pending(value, args[2]) then
      redis.call('HSET', name, field, 'k' .. change .. 'l' .. NONE)
    elseif string.sub(value, 1, 17) ~= 'k' .. change then
      return '-'
    end
    return '+'
  end)
end

-- The change; steps: hash, field, row or '', keep (1 to leave the document as it was). Ends locks.
local function unlock(keys, args)
  local change = 'k' .. args[1]
  return each(args, 2, 4, function(base, i)
    local name, field, row, keep = base .. args[i], args[i + 1], args[i + 2], args[i + 3]
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
    return ''
  end)
end

-- KEYS[1] is the start of all names of a partition. ARGV: change, what, ms or rows. Begins (u), decides (c with its
-- rows, x for nothing if it is late) or forgets (f) a change of several documents. Answers its state: u, c with its
-- rows, a.
local function change(keys, args)
  local name, field, what = keys[1] .. 't', args[1], args[2]
  if what == 'f' then
    redis.call('HDEL', name, field)
    return 'a'
  end
  if what == 'u' then
    redis.call('HSETNX', name, field, 'u' .. string.format('%.0f', now() + tonumber(args[3])))
  end
  local value = redis.call('HGET', name, field) or 'a'
  if string.sub(value, 1, 1) == 'u' then
    if what == 'c' then
      value = 'c' .. args[3]
      redis.call('HSET', name, field, value)
    elseif what == 'x' and tonumber(string.sub(value, 2)) < now() then
      value = 'a'
      redis.call('HDEL', name, field)
    end
  end
  return value
end

-- KEYS[1] is the start of all names of a partition. ARGV: how many numbers are taken, and the last one that is known
-- to be given: a primary that was lost may have taken the last ones with it. Answers the last one.
local function numbers(keys, args)
  local name = keys[1] .. 'next'
  local last = math.max(tonumber(redis.call('GET', name) or 0), tonumber(args[2])) + tonumber(args[1])
  redis.call('SET', name, string.format('%.0f', last))
  return last
end

local function register(name, work, ...)
  redis.register_function({
    function_name = 'uniqcrawl_3_' .. name,
    callback = work,
    flags = { 'allow-cross-slot-keys', ... },
  })
end

register('post', post)
register('numbers', numbers)
register('announce', announce)
register('look', look)
register('renew', renew)
register('settle', settle)
register('write', write)
register('lock', lock)
register('change', change)
-- A node that is full is still read, and what frees memory is done there.
register('find', post, 'no-writes')
register('entries', entries, 'no-writes')
register('read', read, 'no-writes')
register('states', states, 'no-writes')
register('versions', versions, 'no-writes')
register('lives', lives, 'no-writes')
register('unpost', unpost, 'allow-oom')
register('withdraw', withdraw, 'allow-oom')
register('expire', expire, 'allow-oom')
register('unlock', unlock, 'allow-oom')
