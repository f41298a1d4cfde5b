package remote

import (
	"context"
	"fmt"
	"strconv"

	"cellserver/internal/limiter"
	"cellserver/internal/remote/servers"
	"cellserver/internal/store"
)

// luaTime sets now, as a decimal number of nanoseconds, from ARGV[1] or, if that is empty, the server's clock.
const luaTime = `
local now = ARGV[1]
if now == '' then
  local t = redis.call('TIME')
  now = t[1] .. string.format('%06d', t[2]) .. '000'
end
`

// luaGet is a function that returns a value that may be a state, false for none, 0 for what is no string or too long for one of ours,
// and a table for an error of the server.
const luaGet = `
local function get(key)
  local v = redis.pcall('GETRANGE', key, 0, ` + maxValueText + `)
  if v == '' then v = redis.call('GET', key) end
  if type(v) == 'table' then
    if string.sub(v.err, 1, 9) ~= 'WRONGTYPE' then return v end
    return 0
  end
  if v and #v > ` + maxValueText + ` then return 0 end
  return v
end
`

const maxValueText = "524352"

// readScript returns the time, and what stands at each key. ARGV[2] is how many bytes that may be; else it returns only the time.
var readScript = servers.NewScript(luaTime + luaGet + `
local r, bytes = {now}, 0
for i = 1, #KEYS do
  local v = get(KEYS[i])
  if type(v) == 'table' then return v end
  if type(v) == 'string' then
    bytes = bytes + #v
    if bytes > tonumber(ARGV[2]) then return {now} end
  end
  r[i + 1] = v
end
return r
`)

// swapScript writes keys if all have what was found there, and returns the time; else it returns the time and, for each that has
// not, its number and what it has, or only the first number where ARGV[2] is '1'. A key has three arguments: what was found ('-' for
// nothing, '?' for what is not ours, or '=' and the value), for how many milliseconds to keep what is written (” to write nothing,
// '-' to delete, '0' for ever), and that.
var swapScript = servers.NewScript(luaTime + luaGet + `
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
`)

// deleteScript deletes keys, and returns the time and the head of each value; only the time if one of them is not ours. It leaves a
// decimal number alone that is no TAT after now: that may be a counter of somebody's. ARGV[2] is how long a head is.
var deleteScript = servers.NewScript(luaTime + `
local r, ours = {now}, {}
for i = 1, #KEYS do
  local v = redis.pcall('GETRANGE', KEYS[i], 0, ARGV[2] - 1)
  if type(v) == 'table' then
    if string.sub(v.err, 1, 9) ~= 'WRONGTYPE' then return v end
    return {now}
  end
  if string.sub(v, 1, 4) == '` + statePrefix + `' then
    ours[#ours + 1] = KEYS[i]
  elseif string.find(v, '^%d+$') and #v < 20 then
    if #v > #now or #v == #now and v > now then ours[#ours + 1] = KEYS[i] end
  elseif v ~= '' or redis.call('EXISTS', KEYS[i]) == 1 then
    return {now}
  end
  r[i + 1] = v
end
for i = 1, #ours do redis.call('DEL', ours[i]) end
return r
`)

// call has a script executed at the server of a key, and returns its reply, of which the first is the time. The error is a
// store.Failure or of package limiter.
func (s *Store) call(ctx context.Context, key string, c *servers.Call) (rest []any, serverNs int64, err error) {
	ctx, cancel := s.timeout(ctx)
	defer cancel()
	if s.send(ctx, key, c); c.Err != nil {
		return nil, 0, failureOf(failedOf(c.Err))
	}
	return replyOf(c.Reply)
}

// send makes a call, and waits for replicas if it is to.
func (s *Store) send(ctx context.Context, key string, c *servers.Call) {
	if server, err := s.Pool.Of(ctx, key); s.Wait > 0 && c.Script != readScript && err == nil {
		if s.Pool.Send(ctx, server, []*servers.Call{c}, s.Wait); c.Err == nil || !failedOf(c.Err).Again() {
			return
		}
	}
	_ = s.Pool.Do(ctx, key, c) // the error is the call's
}

func replyOf(reply any) (rest []any, serverNs int64, err error) {
	all, _ := reply.([]any)
	if len(all) == 0 {
		return nil, 0, store.Failure{Line: fmt.Sprintf("ERR a script of ours returned %.40q", fmt.Sprint(reply))}
	}
	if serverNs, err = timeIn(all[0]); err != nil {
		return nil, 0, store.Failure{Line: "ERR " + err.Error()}
	}
	return all[1:], serverNs, nil
}

// timeArg is the first argument of each script: the time, or nothing if it is to be the server's.
func (s *Store) timeArg(nowNs int64) any {
	if s.CallersTime {
		return strconv.FormatInt(nowNs, 10)
	}
	return ""
}

func (s *Store) readCall(nowNs int64, names []string) *servers.Call {
	return &servers.Call{Script: readScript, Keys: names, Args: []any{s.timeArg(nowNs), txBytes}}
}

// read reads what stands at keys of one step.
func (s *Store) read(ctx context.Context, nowNs int64, names []string) (serverNs int64, at []found, err error) {
	rest, serverNs, err := s.call(ctx, names[0], s.readCall(nowNs, names))
	if err != nil {
		return 0, nil, err
	}
	if len(rest) != len(names) {
		return 0, nil, errTooLarge
	}
	at = make([]found, len(names))
	for i, v := range rest {
		at[i] = foundIn(v)
	}
	return serverNs, at, nil
}

// swap is a call of swapScript.
type swap struct {
	call   servers.Call
	moreMs uint64
}

// newSwap returns one of no keys yet. values says that the values are wanted of keys that have others.
func (s *Store) newSwap(nowNs int64, keys int, values bool) *swap {
	w := &swap{call: servers.Call{Script: swapScript, Keys: make([]string, 0, keys), Args: make([]any, 0, 2+3*keys)}}
	if s.CallersTime {
		w.moreMs = hourMs
	}
	first := "1"
	if values {
		first = ""
	}
	w.call.Args = append(w.call.Args, s.timeArg(nowNs), first)
	return w
}

// key adds a key, what is expected there, and what it becomes; nil is for one that is left as it is. It returns the value.
func (w *swap) key(name string, f *found, to *limiter.State, serverNs int64) (value string) {
	expected := "-"
	switch {
	case f.err != nil:
		expected = "?"
	case !f.absent:
		expected = "=" + f.value
	}
	px := ""
	switch {
	case to == nil:
	case to.ExpiresNs <= serverNs:
		px = "-"
	default:
		px = strconv.FormatUint(pxOf(to, serverNs, w.moreMs), 10)
		value = string(appendValue(nil, to))
	}
	w.call.Keys = append(w.call.Keys, name)
	w.call.Args = append(w.call.Args, expected, px, value)
	return value
}

// swapped is whether a swap was done, and what stands at the only key where it was not.
func swapped(rest []any) (done bool, now found) {
	switch len(rest) {
	case 0:
		return true, found{}
	case 1:
		return false, found{}
	}
	return false, foundIn(rest[1])
}
