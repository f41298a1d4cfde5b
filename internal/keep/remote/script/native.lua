-- See native.go.
local call, floor = redis.call, math.floor
local now, hi, lo = ARGV[1], ARGV[2] + 0, ARGV[3] + 0
if now == '' then
  local t = call('TIME')
  local a = t[1] % 65536
  local b = (t[1] - a) / 65536 * 1e9
  lo = a * 1e9 + b % 65536 * 65536 + t[2] * 1000
  hi = floor(b / 65536) + floor(lo / 4294967296)
  lo = lo % 4294967296
  now = t[1] .. string.format('%06d', t[2]) .. '000'
end
local kind, before = ARGV[4] + 0, redis.pcall('GETRANGE', KEYS[1], 0, 22)
if type(before) == 'table' then return {now} end
local live, count, endHi, endLo = false, 0
if before == '' then
  if call('EXISTS', KEYS[1]) == 1 then return {now} end
  before = false
else
  if #before ~= 22 or string.sub(before, 1, 4) ~= 'cl1:' or string.byte(before, 5) ~= kind or string.byte(before, 14) ~= 8 then
    return {now}
  end
  local length, countLo, countHi
  endLo, endHi, length, countLo, countHi = struct.unpack('<I4I4BI4I4', before, 6)
  if endHi >= 2147483648 or countHi >= 1048576 then return {now} end
  live = endHi > hi or endHi == hi and endLo > lo
  if live then count = countHi * 4294967296 + countLo end
end
local changed = false
for i = 5, #ARGV, 6 do
  local n, q, max, denied = ARGV[i] + 0, ARGV[i + 1] + 0, ARGV[i + 2] + 0, ARGV[i + 5] == '1'
  for _ = 1, n do
    local was = count
    if kind == 2 then
      if q < 0 then
        count = math.max(0, count + q)
      elseif denied or q <= max - count then
        count = count + q
      end
      if count ~= was and not live then
        live = true
        endLo = lo + ARGV[i + 4]
        endHi = hi + ARGV[i + 3] + floor(endLo / 4294967296)
        endLo = endLo % 4294967296
      end
    else
      if q < 0 then
        count = count + math.max(0, math.min(-q, max - count))
      elseif q <= count then
        count = count - q
      end
      if count ~= was then
        if not live then endHi, endLo = 2147483647, 4294967295 end
        live = count > 0
      end
    end
    if count == was then break end
    changed = true
    if count >= 4503599627370496 then return {now} end
  end
end
if not changed then return {now, before} end
if not live then
  call('DEL', KEYS[1])
  return {now, before}
end
if endHi >= 2147483648 then return {now} end
local after = 'cl1:' .. struct.pack('<BI4I4BI4I4', kind, endLo, endHi, 8, count % 4294967296, floor(count / 4294967296))
if endHi == 2147483647 and endLo == 4294967295 then
  call('SET', KEYS[1], after)
else
  local ns = (endHi - hi) * 4294967296 + (endLo - lo)
  local ms = math.ceil(ns / 1e6) + floor(ns / 9007199254740992) + LONGER
  call('SET', KEYS[1], after, 'PX', string.format('%.0f', ms))
end
return {now, before}
