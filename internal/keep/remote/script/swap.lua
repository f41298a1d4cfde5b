-- See keyScripts.swap.
--TIME
--GET
local d, inTime = 0, true
if ARGV[2] ~= '' then
  d = (string.sub(now, 1, -10) - ARGV[2]) * 1e9 + (string.sub(now, -9) - ARGV[3])
  inTime = d >= 0 and (ARGV[4] == '' or d <= ARGV[4] + 0)
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
  if not (same and inTime) then
    r[#r + 1] = i
    r[#r + 1] = v
  end
end
if #r > 1 then return r end
local function later(v, patches)
  local parts, last = {}, 1
  for at, from, most in string.gmatch(patches, '(%d+) (%d+) (%d+)') do
    local by = math.max(0, math.min(d - from, most + 0))
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
  local px, value, patches = ARGV[4 * i + 2], ARGV[4 * i + 3], ARGV[4 * i + 4]
  if d > 0 and patches ~= '' then value = later(value, patches) end
  if px == '-' then
    redis.call('DEL', KEYS[i])
  elseif px == '0' then
    redis.call('SET', KEYS[i], value)
  elseif px ~= '' then
    redis.call('SET', KEYS[i], value, 'PX', px)
  end
end
return r
