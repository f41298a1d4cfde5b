-- See keyScripts.swap.
--TIME
--GET
local d = 0
if ARGV[3] ~= '' then
  d = (string.sub(now, 1, -10) - ARGV[3]) * 1e9 + (string.sub(now, -9) - ARGV[4])
end
local r = {now}
for i = 1, #KEYS do
  local want, same = ARGV[4 * i + 1], false
  local v = get(KEYS[i])
  if type(v) == 'table' then return v end
  local how = string.sub(want, 1, 1)
  if how == '-' then
    same = v == false
  elseif how == '?' then
    same = v == 0
  elseif type(v) == 'string' then
    same = #v == #want - 1 and v == string.sub(want, 2)
  end
  for ends in string.gmatch(ARGV[4 * i + 4], '!%d+ (%d+)') do
    same = same and d < ends + 0
  end
  if not same or d < 0 then
    r[#r + 1] = i
    if ARGV[2] == '1' then return r end
    r[#r + 1] = v
  end
end
if #r > 1 then return r end
local function later(v, stamps)
  local parts, last = {}, 1
  for sign, at, from, most in string.gmatch(stamps, '([-+*])(%d+) (%d+) (%d+)') do
    local by = math.max(0, math.min((sign == '*' and 2 * d or d) - from, most + 0))
    if sign == '-' then by = -by end
    if string.sub(v, 1, 4) ~= 'cl1:' then
      local s, n = string.sub(v, 1, -10) + 0, string.sub(v, -9) + by
      return string.format('%d%09d', s + math.floor(n / 1e9), n % 1e9)
    end
    local lo, hi = struct.unpack('<I4I4', v, at + 1)
    lo = lo + by
    parts[#parts + 1] = string.sub(v, last, at + 0)
    parts[#parts + 1] = struct.pack('<I4I4', lo % 4294967296, (hi + math.floor(lo / 4294967296)) % 4294967296)
    last = at + 9
  end
  parts[#parts + 1] = string.sub(v, last)
  return table.concat(parts)
end
for i = 1, #KEYS do
  local px, value = ARGV[4 * i + 2], ARGV[4 * i + 3]
  if d > 0 and ARGV[4 * i + 4] ~= '' then value = later(value, ARGV[4 * i + 4]) end
  if px == '-' then
    redis.call('DEL', KEYS[i])
  elseif px == '0' then
    redis.call('SET', KEYS[i], value)
  elseif px ~= '' then
    redis.call('SET', KEYS[i], value, 'PX', px + math.ceil(d / 1e6))
  end
end
return r
