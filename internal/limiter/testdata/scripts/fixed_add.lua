-- INCRBY and EXPIRE, then a look at the counter, so that what is denied counts, too. EXPIRE cannot be given the time, so the end
-- stands in a key of its own. KEYS: counter, end. ARGV: most, period, quantity, now.
local most, period, quantity, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
if now >= tonumber(redis.call('GET', KEYS[2]) or '0') then
  redis.call('DEL', KEYS[1])
end
local count = redis.call('INCRBY', KEYS[1], quantity)
if count == quantity then
  redis.call('SET', KEYS[2], now + period)
end
return count <= most and 1 or 0
