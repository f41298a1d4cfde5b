package admin

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/decide/observe"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/glob"
)

// Setting is a parameter of CONFIG GET and CONFIG SET.
type Setting struct {
	Name string
	Get  func() string
	// Set checks a value and returns the function that applies it. Without Set a change requires a restart.
	Set func(value string, other Others) (apply func(), err error)
}

// Others returns the value that the same command gives another setting.
type Others func(name string) (value string, ok bool)

// Constant returns an immutable setting.
func Constant(name, value string) Setting {
	return Setting{Name: name, Get: func() string { return value }}
}

// configGet is CONFIG GET pattern [pattern ...].
func (k *Server) configGet(c execute.Call, args [][]byte) error {
	if err := argument.CheckNames(args[2:]); err != nil {
		return err
	}
	wanted := make([]bool, len(k.Settings))
	for _, pattern := range args[2:] {
		matches := argument.NameMatcher(pattern)
		for i := range k.Settings {
			wanted[i] = wanted[i] || matches(k.Settings[i].Name)
		}
	}
	var found []Setting
	for i, setting := range k.Settings {
		if wanted[i] {
			found = append(found, setting)
		}
	}
	c.Reply().Map(len(found))
	for _, setting := range found {
		c.Reply().Pair(setting.Name, setting.Get())
	}
	return nil
}

// configSet is CONFIG SET name value [name value ...]: all of them, or none.
func (k *Server) configSet(c execute.Call, conn execute.Connection, args [][]byte) error {
	pairs := args[2:]
	if len(pairs)%2 != 0 {
		return reply.ErrSyntax
	}
	settings, err := k.settings(pairs)
	if err != nil {
		return err
	}
	k.setting.Lock() // before the checks, which depend on current values
	defer k.setting.Unlock()
	var apply []func()
	var names []string
	for i, setting := range settings {
		one, err := setting.Set(string(pairs[2*i+1]), func(name string) (value string, ok bool) {
			i := slices.IndexFunc(settings, func(st *Setting) bool { return st.Name == name })
			if i < 0 {
				return "", false
			}
			return string(pairs[2*i+1]), true
		})
		if err != nil {
			return errConfigSet([]byte(setting.Name), err.Error())
		}
		apply, names = append(apply, one), append(names, setting.Name)
	}
	for _, one := range apply {
		one()
	}
	k.Log.Info("settings changed by CONFIG SET", "client", conn.Client().Addr(),
		"settings", strings.Join(names, " ")) // not the values: one is a password
	return c.OK()
}

// settings looks all names up before any value is checked.
func (k *Server) settings(pairs [][]byte) (found []*Setting, err error) {
	for ; len(pairs) > 0; pairs = pairs[2:] {
		name := glob.Fold(pairs[0])
		i := slices.IndexFunc(k.Settings, func(st Setting) bool { return st.Name == name })
		if i < 0 {
			return nil, reply.Error("ERR Unknown option or number of arguments for CONFIG SET - '" + resp.Printable(pairs[0]) + "'")
		}
		setting := &k.Settings[i]
		if setting.Set == nil {
			return nil, errConfigSet(pairs[0], "can't set immutable config")
		}
		if slices.Contains(found, setting) {
			return nil, errConfigSet(pairs[0], "duplicate parameter")
		}
		found = append(found, setting)
	}
	return found, nil
}

// Change runs change; a CONFIG SET waits until it is done.
func (k *Server) Change(change func()) {
	k.setting.Lock()
	defer k.setting.Unlock()
	change()
}

func errConfigSet(name []byte, reason string) error {
	return reply.Error("ERR CONFIG SET failed (possibly related to argument '" + resp.Printable(name) + "') - " + resp.PrintableN([]byte(reason), maxReasonBytes))
}

const maxReasonBytes = 256

func (k *Server) configResetStat(c execute.Call, _ [][]byte) error {
	k.Records.ResetStat()
	k.Logins.Reset()
	return c.OK()
}

// configRewrite does nothing: the server never writes its config file, and the role is kept in the data
// directory. It is no error, as Redis Sentinel sends it in the transaction that changes the role.
func configRewrite(c execute.Call, _ [][]byte) error { return c.OK() }

// Thresholds are the initial settings of SLOWLOG and LATENCY. The zero Thresholds record nothing.
type Thresholds struct {
	SlowlogFromUs int64 // shortest call in SLOWLOG; negative for none
	SlowlogMaxLen int64
	LatencyFromMs int64 // shortest LATENCY event; 0 for none
}

func (t Thresholds) apply(r *observe.Records) {
	if t.SlowlogMaxLen == 0 {
		t.SlowlogFromUs = -1
	}
	r.Slowness.SetSlowlog(t.SlowlogFromUs)
	r.Slowness.SetLatency(t.LatencyFromMs)
	r.Slowlog.SetMaxLen(t.SlowlogMaxLen)
}

func recordSettings(r *observe.Records) []Setting {
	return []Setting{
		Integer("slowlog-log-slower-than", -1, math.MaxInt64, r.Slowness.Slowlog, r.Slowness.SetSlowlog),
		Integer("slowlog-max-len", 0, observe.MaxSlowlogLen, r.Slowlog.MaxLen, r.Slowlog.SetMaxLen),
		Integer("latency-monitor-threshold", 0, math.MaxInt64, r.Slowness.Latency, r.Slowness.SetLatency),
		Constant("latency-tracking", "yes"),
	}
}

// Integer returns a setting of a whole number within bounds that passes the checks.
func Integer[T ~int | ~int64](name string, minimum, maximum T, get func() T, set func(T), checks ...func(T) error) Setting {
	return Setting{
		Name: name,
		Get:  func() string { return strconv.FormatInt(int64(get()), 10) },
		Set: func(text string, _ Others) (func(), error) {
			n, ok := resp.ParseInt([]byte(text))
			if !ok {
				return nil, errors.New("argument couldn't be parsed into an integer")
			}
			if n < int64(minimum) || n > int64(maximum) {
				return nil, fmt.Errorf("argument must be between %d and %d inclusive", minimum, maximum)
			}
			for _, check := range checks {
				if err := check(T(n)); err != nil {
					return nil, err
				}
			}
			return func() { set(T(n)) }, nil
		},
	}
}
