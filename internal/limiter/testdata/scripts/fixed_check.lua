-- GET, then INCRBY and EXPIRE, where what is denied does not count. EXPIRE cannot be given the time, so the end stands in
-- a key of its own. KEYS: counter, end. ARGV: most, period, quantity, now.
local most, period, quantity, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if now >= tonumber(redis.call('GET', KEYS[2]) or '0') then
  redis.call('DEL', KEYS[1])
end
local count = tonumber(redis.call('GET', KEYS[1]) or '0')
if count + quantity > most then
  return 0
end
redis.call('INCRBY', KEYS[1], quantity)
if count == 0 then
  redis.call('SET', KEYS[2], now + period)
end
return 1
