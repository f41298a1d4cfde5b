local function get(key, most)
  local v = redis.pcall('GETRANGE', key, 0, HEAD)
  if v == '' then
    v = redis.call('GET', key)
    if v == '' then return 0 end
    return v
  end
  if type(v) == 'table' then
    if string.sub(v.err, 1, 9) ~= 'WRONGTYPE' then return v end
    return 0
  end
  if #v <= HEAD then return v end
  if string.sub(v, 1, 4) ~= 'cl1:' then return 0 end
  local n, at, times, b = 0, 14, 1
  repeat
    b = string.byte(v, at)
    n, at, times = n + b % 128 * times, at + 1, times * 128
  until b < 128 or at > 17
  n = n + at - 1
  if n > MOST then return 0 end
  if most and n > most then return true end
  v = redis.call('GETRANGE', key, 0, n)
  if #v ~= n then return 0 end
  return v
end