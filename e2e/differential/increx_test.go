package differential

import (
	"math/big"
	"slices"
	"strconv"
	"strings"
)

// increxInLua is INCREX for a redis-server that has none, by its own arithmetic. In what follows redis.call
// and redis.pcall have it, too. The numbers of its reply are strings given to the function form, as Lua's own
// would lose digits.
const increxInLua = `
local real, redis, t = redis, {}, '\0temporary'
for name, of in pairs(real) do redis[name] = of end
local function fail(text) error({err = 'ERR ' .. text}, 0) end
local function sumOf(op, a, b)
  real.call('SET', t, a)
  local sum = real.pcall(op, t, b)
  if type(sum) == 'table' then return nil, sum.err end
  return real.call('GET', t)
end
local function negative(a)
  if a == '0' then return a elseif a:sub(1, 1) == '-' then return a:sub(2) end
  return '-' .. a:gsub('^%+', '')
end
local function lessInt(a, b)
  local minusA, minusB = a:sub(1, 1) == '-', b:sub(1, 1) == '-'
  if minusA ~= minusB then return minusA end
  if minusA then a, b = b:sub(2), a:sub(2) end
  return #a < #b or #a == #b and a < b
end
local function isInf(a) return a:lower():match('^[-+]?inf') end
local function lessFloat(a, b)
  if isInf(b) then return b:sub(1, 1) ~= '-' and not (isInf(a) and a:sub(1, 1) ~= '-') end
  if isInf(a) then return a:sub(1, 1) == '-' end
  local d = sumOf('INCRBYFLOAT', a, negative(b))
  return (d or a):sub(1, 1) == '-'
end
local function increx(key, ...)
  local args, o, groups, i = {...}, {}, {}, 1
  local groupOf = {BYINT = 'BY', BYFLOAT = 'BY', LBOUND = 'L', UBOUND = 'U', EX = 'E', PX = 'E', EXAT = 'E', PXAT = 'E',
    PERSIST = 'E', ENX = 'ENX', SATURATE = 'S', NX = 'N', XX = 'N'}
  while i <= #args do
    local word = args[i]:upper()
    local group = groupOf[word]
    if not group or groups[group] then fail('syntax error') end
    groups[group] = word
    if word:match('BY') or word:match('BOUND') or group == 'E' and word ~= 'PERSIST' then
      i = i + 1
      if not args[i] then fail('syntax error') end
      o[group] = args[i]
    end
    i = i + 1
  end
  if groups.ENX and groups.E == 'PERSIST' then fail('syntax error') end
  if groups.ENX and not groups.E then fail('ENX flag requires an expiration') end
  local isFloat = groups.BY == 'BYFLOAT'
  local op, less = 'INCRBY', lessInt
  local least, most, kind = '-9223372036854775808', '9223372036854775807', 'an integer or out of range'
  if isFloat then
    op, less, kind = 'INCRBYFLOAT', lessFloat, 'a valid float'
    least, most = '-1.18973149535723176502e+4932', '1.18973149535723176502e+4932'
  end
  local function number(text, what)
    local n, err = sumOf(op, '0', text)
    if n then return n, text end
    if err:match('Infinity') then return nil, text end
    fail(what .. ' is not ' .. kind)
  end
  local _, by = number(o.BY or '1', 'Increment')
  if isFloat and isInf(by) then fail('BYFLOAT increment cannot be Infinity') end
  if o.L then _, least = number(o.L, 'LBOUND') end
  if o.U then _, most = number(o.U, 'UBOUND') end
  if less(most, least) then fail("LBOUND can't be greater than UBOUND") end
  local past = false
  if o.E then
    local set = real.pcall('SET', t, '1', groups.E, o.E)
    if set.err then error({err = set.err:gsub("'set'", "'increx'")}, 0) end
    past = real.call('EXISTS', t) == 0
  end
  local old, live = real.call('GET', key), true
  if not old then old, live = '0', false end
  local shown, text = number(old, 'value')
  if not shown then fail('value cannot be Infinity') end
  if groups.N == 'NX' and live or groups.N == 'XX' and not live then return shown, '0' end
  local sum = sumOf(op, old, by)
  if not sum then sum = by:sub(1, 1) == '-' and '-inf' or 'inf' end
  local lower, higher = sum == '-inf', sum == 'inf'
  if not lower and not higher then lower, higher = less(sum, least), less(most, sum) end
  if lower or higher then
    if not groups.S then return shown, '0' end
    if isFloat and not (lower and isInf(least) or higher and isInf(most)) or not isFloat then
      sum = number(sum:match('inf') and (lower and less(most, least) and most or higher and most or least) or lower and least or most, 'bound')
    else
      fail('applied increment would be Infinity')
    end
  end
  local applied
  if isFloat then
    applied = sumOf(op, sum, negative(old)) or fail('applied increment would be Infinity')
  elseif old == '-9223372036854775808' then
    local half = sumOf(op, sum, '9223372036854775807')
    applied = half and sumOf(op, half, '1') or fail('applied increment would overflow')
  else
    applied = sumOf(op, sum, negative(old)) or fail('applied increment would overflow')
  end
  if not groups.E or groups.ENX and live and real.call('PTTL', key) >= 0 then
    real.call('SET', key, sum, 'KEEPTTL')
  elseif past then
    real.call('DEL', key)
    return sum, applied
  elseif groups.E == 'PERSIST' then
    real.call('SET', key, sum)
  else
    real.call('SET', key, sum, groups.E, o.E)
  end
  if isFloat then real.call('INCRBYFLOAT', key, '0') end
  return sum, applied
end
local function isIncrex(name) return name:upper() == 'INCREX' end
function redis.pcall(name, key, ...)
  if not isIncrex(name) then return real.pcall(name, key, ...) end
  local ok, after, applied = pcall(increx, key, ...)
  real.call('DEL', t)
  if not ok then return {err = after} end -- pcall has made it a string
  return {form(after), form(applied)}
end
function redis.call(name, ...)
  if not isIncrex(name) then return real.call(name, ...) end
  local reply = redis.pcall(name, ...)
  if reply.err then error(reply, 0) end
  return reply
end
`

// asIncrexInLua returns the call for a redis-server without INCREX, and whether it is another one.
func asIncrexInLua(call []string) (as []string, other bool) {
	switch name := strings.ToLower(call[0]); {
	case name == "increx" && len(call) > 1:
		const asTexts = "local function form(n) return n end "
		as = []string{"EVAL", asTexts + increxInLua + "return redis.pcall('INCREX', KEYS[1], unpack(ARGV))", "1"}
		return append(as, call[1:]...), true
	case name == "eval" && slices.ContainsFunc(call, func(word string) bool { return strings.EqualFold(word, "increx") }):
		form := "tonumber(n)"
		if slices.ContainsFunc(call, func(word string) bool { return strings.EqualFold(word, "byfloat") }) {
			if form = "n"; strings.Contains(call[1], "setresp(3)") {
				form = "{double = tonumber(n)}"
			}
		}
		as = slices.Clone(call)
		as[1] = "local function form(n) return " + form + " end " + increxInLua + call[1]
		return as, true
	}
	return call, false
}

// evenIncrex equalizes the replies of INCREX and its likeness: the types of numbers, the places of errors in
// scripts, and, in what was added to a float, the last digit, as the likeness subtracts what was printed.
func evenIncrex(ours, redis value) (value, value) {
	isNumber := func(v value) bool { return v.typ == ':' || v.typ == ',' || v.typ == '$' && !v.null }
	switch {
	case ours.typ == '-' && redis.typ == '-':
		ours.text, _, _ = strings.Cut(ours.text, " script: ")
		redis.text, _, _ = strings.Cut(redis.text, " script: ")
	case isNumber(ours) && isNumber(redis) && isNear(ours.text, redis.text):
		return redis, redis
	}
	return ours, redis
}

func isNear(a, b string) bool {
	x, ok := new(big.Rat).SetString(a)
	y, ok2 := new(big.Rat).SetString(b)
	if a == b || !ok || !ok2 || len(a) > 100 || len(b) > 100 || !strings.Contains(a+b, ".") && !strings.Contains(a+b, "e") {
		return a == b
	}
	most := new(big.Rat).Mul(new(big.Rat).Abs(x), big.NewRat(1, 1<<52)) // a script's reply is a double
	if most.Cmp(big.NewRat(2, 1e17)) < 0 {
		most.SetFrac64(2, 1e17)
	}
	return new(big.Rat).Abs(x.Sub(x, y)).Cmp(most) <= 0
}

// increx returns a call of INCREX.
func (m *valueMaker) increx() []string {
	by, number := "BYINT", func() string {
		if m.IntN(4) > 0 {
			return strconv.Itoa(m.IntN(30) - 10)
		}
		return m.integer()
	}
	if m.IntN(3) == 0 {
		by, number = "BYFLOAT", func() string {
			if m.IntN(4) > 0 { // exact, so that sums meet bounds or are far from them
				return strconv.FormatFloat(float64(m.IntN(200)-80)/8, 'f', -1, 64)
			}
			return floatText(m.Rand)
		}
	}
	var groups [][]string
	if by == "BYFLOAT" || m.IntN(3) > 0 {
		groups = append(groups, []string{by, number()})
	}
	for _, bound := range []string{"LBOUND", "UBOUND"} {
		if m.IntN(3) == 0 {
			groups = append(groups, []string{bound, number()})
		}
	}
	for _, option := range []string{"SATURATE", "SATURATE", m.pick("NX", "XX", "XX")} {
		if m.IntN(6) == 0 {
			groups = append(groups, []string{option})
		}
	}
	if m.IntN(2) == 0 {
		groups = append(groups, strings.Fields(m.pick("EX S", "PX M", "EXAT A", "PXAT B", "EXAT 1", "PERSIST")))
		if m.IntN(2) == 0 {
			groups = append(groups, []string{"ENX"})
		}
	}
	m.Shuffle(len(groups), func(i, j int) { groups[i], groups[j] = groups[j], groups[i] })
	return append([]string{"INCREX", "K"}, slices.Concat(groups...)...)
}

// increxEnds reports whether INCREX may let a key expire before the stream ends, or after 2262, or has no
// key, which is an error of a command that redis-server does not know.
func increxEnds(call []string) bool {
	if len(call) < 2 {
		return true
	}
	for i, word := range call[:len(call)-1] {
		n, err := strconv.ParseInt(call[i+1], 10, 64)
		most := int64(7e12)
		switch strings.ToLower(word) {
		case "ex", "exat":
			most = 7e9
		case "px", "pxat":
		default:
			continue
		}
		isPast := strings.HasSuffix(strings.ToLower(word), "at") && n == 1
		if err == nil && n > 0 && (n < 100_000 && !isPast || n > most && n < 9223372036854775000/1000) {
			return true
		}
	}
	return false
}
