-- Asks cellserver by CL.CHECK whether a request may pass:
--
--   http-request lua.check_limit LIMIT VARIABLE,...
--
-- A variable has the key; several have its parts, which make the same key as by= over HTTP. An empty part fails.
-- txn.limit_result is then "allowed", "denied" or "failed", and txn.limit_error says why it failed; if it did not,
-- txn.limit_policy, txn.limit_state and txn.limit_retry_after are the values of RateLimit-Policy, RateLimit and
-- Retry-After.
--
-- The environment has the settings: LIMITER_ADDRESS (an IP address and port), LIMITER_TIMEOUT_MS for all of a call,
-- and LIMITER_PASSWORD, if one is needed, with LIMITER_USER, if it is another than default.
--
-- The converter lua.limit_network makes the key of an address: that of IPv4, or of IPv6 the network of 64 bits, as in
-- 2001:db8:1:2::/64, because a host has as many addresses. by=ip over HTTP makes the same.
--
-- No call blocks HAProxy: sockets of Lua give way to other requests. Load it by lua-load-per-thread, HAProxy 2.5 or
-- newer: each thread has its connections.

local host, port = string.match(os.getenv("LIMITER_ADDRESS") or "127.0.0.1:6380", "^(.*):(%d+)$")
assert(host, "cellserver.lua: LIMITER_ADDRESS is not ADDRESS:PORT")
local timeout_us = 1000 * assert(tonumber(os.getenv("LIMITER_TIMEOUT_MS") or "100"), "cellserver.lua: LIMITER_TIMEOUT_MS is not a number")
local user, password = os.getenv("LIMITER_USER") or "default", os.getenv("LIMITER_PASSWORD")

-- Open connections that no request uses: of this thread, as each has a Lua state of its own.
local idle, max_idle = {}, 64

local function now_us()
	local now = core.now()
	return now.sec * 1000000 + now.usec
end

-- Lets the next step on a connection take until the deadline. The least that HAProxy knows is a millisecond.
local function bound(tcp, deadline_us)
	local left_us = deadline_us - now_us()
	if left_us < 1000 then error("timeout", 0) end
	tcp:settimeout(left_us / 1000000)
end

local function encode(...)
	local words = { ... }
	local out = { "*" .. #words .. "\r\n" }
	for i, word in ipairs(words) do out[i + 1] = "$" .. #word .. "\r\n" .. word .. "\r\n" end
	return table.concat(out)
end

-- Reads a line without its end.
local function read_line(tcp, deadline_us)
	bound(tcp, deadline_us)
	local line, problem = tcp:receive("*l")
	if not line then error(problem or "closed", 0) end
	return (string.gsub(line, "\r$", ""))
end

-- Sends a command and returns the first line of its reply. An error of the server leaves the connection usable.
local function command(tcp, deadline_us, ...)
	bound(tcp, deadline_us)
	local sent, problem = tcp:send(encode(...))
	if not sent then error(problem or "closed", 0) end
	return read_line(tcp, deadline_us)
end

local function open(deadline_us)
	local tcp = core.tcp()
	bound(tcp, deadline_us)
	local connected, problem = tcp:connect(host, tonumber(port))
	if not connected then error(problem or "not connected", 0) end
	if password then
		local reply = command(tcp, deadline_us, "AUTH", user, password)
		if reply ~= "+OK" then error(reply, 0) end
	end
	return tcp
end

-- Returns the five integers of CL.CHECK, or an error of the server.
local function ask(tcp, deadline_us, limit, key)
	local header = command(tcp, deadline_us, "CL.CHECK", limit, key)
	if string.sub(header, 1, 1) == "-" then return nil, string.sub(header, 2) end
	if header ~= "*5" then error("unexpected reply: " .. header, 0) end
	local numbers = {}
	for i = 1, 5 do
		local line = read_line(tcp, deadline_us)
		numbers[i] = string.match(line, "^:(-?%d+)$") or error("unexpected reply: " .. line, 0)
	end
	return numbers
end

local function close(tcp)
	pcall(tcp.close, tcp)
end

-- Asks on one connection and keeps it, or closes it if it is not at the end of a reply.
local function ask_on(tcp, deadline_us, limit, key)
	local done, numbers, refusal = pcall(ask, tcp, deadline_us, limit, key)
	if not done then
		close(tcp)
		return nil, numbers, true
	end
	if #idle < max_idle then idle[#idle + 1] = tcp else close(tcp) end
	return numbers, refusal, false
end

-- Asks on an idle connection. If the server has closed that one, as when it was restarted, the call was
-- not counted and goes over a new one. After a timeout there is no second call: the first may count.
local function check(limit, key)
	local deadline_us = now_us() + timeout_us
	local kept = table.remove(idle)
	if kept then
		local numbers, problem, broken = ask_on(kept, deadline_us, limit, key)
		if not broken or now_us() + 1000 > deadline_us then return numbers, problem end
		for i = #idle, 1, -1 do close(table.remove(idle, i)) end
	end
	local opened, tcp = pcall(open, deadline_us)
	if not opened then return nil, tcp end
	local numbers, problem = ask_on(tcp, deadline_us, limit, key)
	return numbers, problem
end

core.register_converters("limit_network", function(address)
	local mapped = string.match(address, "^::[fF][fF][fF][fF]:(%d+%.%d+%.%d+%.%d+)$")
	if mapped or not string.find(address, ":", 1, true) then return mapped or address end
	local before, after = string.match(address, "^(.-)::(.*)$")
	local groups = {}
	for group in string.gmatch(before or address, "[^:]+") do groups[#groups + 1] = tonumber(group, 16) end
	if before then
		local _, behind = string.gsub(after, "[^:]+", "")
		if string.find(after, ".", 1, true) then behind = behind + 1 end -- its last part is of IPv4
		for _ = #groups + 1, 8 - behind do groups[#groups + 1] = 0 end
		for group in string.gmatch(after, "[^:]+") do groups[#groups + 1] = tonumber(group, 16) end
	end
	local last = 4
	while last > 0 and groups[last] == 0 do last = last - 1 end
	local text = {}
	for i = 1, last do text[i] = string.format("%x", groups[i]) end
	return table.concat(text, ":") .. "::/64"
end)

-- Reports whether a text reads as a list of parts with their lengths, as in 4:acme,3:foo.
local function is_list(text)
	local at = 1
	while true do
		local length, from = string.match(text, "^(%d+):()", at)
		if not length or string.find(length, "^0.") then return false end
		at = from + tonumber(length)
		if at > #text then return at == #text + 1 end
		if string.sub(text, at, at) ~= "," then return false end
		at = at + 1
	end
end

-- Makes the key of parts: one is the key itself, unless it reads as a list; several have their lengths before them.
-- Different parts make different keys, whatever visitors put into them.
local function compose(parts)
	if #parts == 1 and not is_list(parts[1]) then return parts[1] end
	for i, part in ipairs(parts) do parts[i] = #part .. ":" .. part end
	return table.concat(parts, ",")
end

local function fail(txn, why)
	txn:set_var("txn.limit_result", "failed")
	txn:set_var("txn.limit_error", why)
	txn:Warning("cellserver: " .. why)
end

core.register_action("check_limit", { "http-req" }, function(txn, limit, variables)
	local parts = {}
	for variable in string.gmatch(variables, "[^,]+") do
		local part = txn:get_var(variable)
		if part == nil or part == "" then return fail(txn, "the variable " .. variable .. " has no part of the key") end
		parts[#parts + 1] = tostring(part)
	end
	local numbers, problem = check(limit, compose(parts))
	if not numbers then return fail(txn, problem) end
	local limited, most, remaining, retry_after, reset_after = table.unpack(numbers)
	txn:set_var("txn.limit_policy", string.format('"%s";q=%s', limit, most))
	if limited == "0" then
		txn:set_var("txn.limit_result", "allowed")
		txn:set_var("txn.limit_state", string.format('"%s";r=%s;t=%s', limit, remaining, reset_after))
		return
	end
	txn:set_var("txn.limit_result", "denied")
	if retry_after == "-1" then -- never: the limit is deny: true
		txn:set_var("txn.limit_state", string.format('"%s";r=%s', limit, remaining))
		return
	end
	txn:set_var("txn.limit_state", string.format('"%s";r=%s;t=%s', limit, remaining, retry_after))
	txn:set_var("txn.limit_retry_after", retry_after)
end, 2)
