-- A sorted set of the requests' times: remove what has left the window, count, and add if there is room. KEYS: set, a counter
-- that tells members of one time apart. ARGV: most, period, quantity, now.
local most, period, quantity, now = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, now - period)
if redis.call('ZCARD', KEYS[1]) + quantity > most then
  return 0
end
for _ = 1, quantity do
  redis.call('ZADD', KEYS[1], now, redis.call('INCR', KEYS[2]))
end
return 1
