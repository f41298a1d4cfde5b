-- As sliding_check.lua for one unit, with the time alone as the member. KEYS: set. ARGV: most, period, quantity (not read), now.
redis.call('ZREMRANGEBYSCORE', KEYS[1], 0, tonumber(ARGV[4]) - tonumber(ARGV[2]))
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[1]) then
  return 0
end
redis.call('ZADD', KEYS[1], ARGV[4], ARGV[4])
return 1
