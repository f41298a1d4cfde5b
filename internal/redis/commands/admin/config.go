package admin

import (
	"errors"
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
	// Set checks a value and returns the function that applies it. Without Set and SetWith a change requires
	// a restart.
	Set func(value string) (apply func(), err error)
	// SetWith replaces Set where settings depend on each other: other returns the value that the same command
	// gives another setting.
	SetWith func(value string, other func(name string) (value string, ok bool)) (apply func(), err error)
}

func (st *Setting) check(value string, other func(name string) (string, bool)) (apply func(), err error) {
	if st.SetWith != nil {
		return st.SetWith(value, other)
	}
	return st.Set(value)
}

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
		one, err := setting.check(string(pairs[2*i+1]), func(name string) (value string, ok bool) {
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
		if setting.Set == nil && setting.SetWith == nil {
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
	const most = 1<<63 - 1
	return []Setting{
		intSetting("slowlog-log-slower-than", -1, most, r.Slowness.Slowlog, r.Slowness.SetSlowlog),
		intSetting("slowlog-max-len", 0, observe.MaxSlowlogLen, r.Slowlog.MaxLen, r.Slowlog.SetMaxLen),
		intSetting("latency-monitor-threshold", 0, most, r.Slowness.Latency, r.Slowness.SetLatency),
		Constant("latency-tracking", "yes"),
	}
}

func intSetting(name string, least, most int64, get func() int64, set func(int64)) Setting {
	return Setting{
		Name: name,
		Get:  func() string { return strconv.FormatInt(get(), 10) },
		Set: func(text string) (func(), error) {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, errors.New("argument couldn't be parsed into an integer")
			}
			if n < least || n > most {
				return nil, errors.New("argument must be between " + strconv.FormatInt(least, 10) + " and " + strconv.FormatInt(most, 10) + " inclusive")
			}
			return func() { set(n) }, nil
		},
	}
}
