-- See keyScripts.read.
--TIME
--GET
local r, bytes = {now}, 0
for i = 1, #KEYS do
  local v = get(KEYS[i], ARGV[2] - bytes)
  if type(v) == 'table' then return v end
  if v == true then return {now} end
  if type(v) == 'string' then
    bytes = bytes + #v
    if bytes > tonumber(ARGV[2]) then return {now} end
  end
  r[i + 1] = v
end
return r
