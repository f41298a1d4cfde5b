-- See keyScripts.swap.
--TIME
--GET
local r = {now}
for i = 1, #KEYS do
  local want, same = ARGV[3 * i], false
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
  if not same then
    r[#r + 1] = i
    if ARGV[2] == '1' then return r end
    r[#r + 1] = v
  end
end
if #r > 1 then return r end
for i = 1, #KEYS do
  local px = ARGV[3 * i + 1]
  if px == '-' then
    redis.call('DEL', KEYS[i])
  elseif px == '0' then
    redis.call('SET', KEYS[i], ARGV[3 * i + 2])
  elseif px ~= '' then
    redis.call('SET', KEYS[i], ARGV[3 * i + 2], 'PX', px)
  end
end
return r
