-- See keyScripts.scan.
--TIME
local page = redis.call('SCAN', ARGV[2], 'MATCH', ARGV[3], 'COUNT', ARGV[4])
local r = {now, page[1]}
for _, key in ipairs(page[2]) do
  local v = redis.pcall('GETRANGE', key, 0, ARGV[5] - 1)
  if type(v) == 'string' and v ~= '' then
    r[#r + 1] = key
    r[#r + 1] = v
  end
end
return r
