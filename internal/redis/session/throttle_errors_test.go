package session_test

import (
	"strings"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/test/resptest"
)

// refusal is a call of CL.THROTTLE that must be refused, and the words.
type refusal struct {
	name string
	args []string // behind the command's name
	want string   // behind "-Cell error: Store error: "
}

// refuse runs calls that must be refused. After each, nothing is stored and the session goes on.
func refuse(t *testing.T, tests []refusal, change ...func(*commands.Config)) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := commandstest.New(change...)
			s := r.Session()
			key := "k"
			if len(tt.args) > 0 {
				key = tt.args[0]
			}
			in := resptest.Encode(append([]string{"CL.THROTTLE"}, tt.args...)...) + resptest.Encode("EXISTS", key) + resptest.Encode("PING")
			want := "-Cell error: Store error: " + tt.want + "\r\n:0\r\n" + commandstest.Pong
			if got := commandstest.Say(t, s, in); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if st := r.Stats(); st.Keys != 0 || st.Allowed != 0 || st.Limited != 0 {
				t.Errorf("the store was asked: %+v", st)
			}
		})
	}
}

func TestThrottleUsage(t *testing.T) {
	const usage = "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]"
	refuse(t, []refusal{
		{"no argument", nil, usage},
		{"one", []string{"k"}, usage},
		{"two", []string{"k", "1"}, usage},
		{"three", []string{"k", "1", "1"}, usage},
		{"six", []string{"k", "1", "1", "1", "1", "1"}, usage},
		{"many", strings.Split(strings.Repeat("1", 100), ""), usage},
		{"before the numbers are read", []string{"k", "x", "y"}, usage},
	})
}

func TestThrottleNotAnInteger(t *testing.T) {
	const words = "Couldn't parse as integer: "
	var tests []refusal
	for _, tt := range []struct{ name, arg, shown string }{
		{"empty", "", ""},
		{"minus", "-", "-"},
		{"plus", "+", "+"},
		{"two signs", "+-1", "+-1"},
		{"blank in front", " 1", " 1"},
		{"blank behind", "1 ", "1 "},
		{"fraction", "1.0", "1.0"},
		{"exponent", "1e3", "1e3"},
		{"hexadecimal", "0x1", "0x1"},
		{"underscore", "1_000", "1_000"},
		{"word", "ten", "ten"},
		{"2^63", "9223372036854775808", "9223372036854775808"},
		{"-2^63-1", "-9223372036854775809", "-9223372036854775809"},
		{"2^64", "18446744073709551616", "18446744073709551616"},
		{"leading zeros and too much", "+0009223372036854775808", "+0009223372036854775808"},
		{"digits around ASCII's", "1/", "1/"},
		{"and", "1:", "1:"},
		{"wide digit", "１", "１"},
		{"NUL", "1\x00", `1\x00`},
		{"newline", "1\n", `1\n`},
		{"control bytes", "\x1b[2J\x07\t\x7f", `\x1b[2J\x07\t\x7f`},
		{"C1 control", "\u009b1", `\xc2\x9b1`},
		{"invalid UTF-8", "\xff\xc3", `\xff\xc3`},
		{"text direction", "\u202e1", `\xe2\x80\xae1`},
		{"a reply to forge", "1\r\n+OK\r\n", `1\r\n+OK\r\n`},
		{"100 bytes", strings.Repeat("x", 100), strings.Repeat("x", 64)},
		{"100 digits", strings.Repeat("9", 100), strings.Repeat("9", 64)},
		{"never cut inside an escape", strings.Repeat("x", 61) + "\x00\x00", strings.Repeat("x", 61)},
		{"never cut inside a rune", strings.Repeat("x", 62) + "漢", strings.Repeat("x", 62)},
	} {
		for i, place := range []string{"max_burst", "count", "period", "quantity"} {
			args := []string{"k", "1", "1", "1", "1"}
			args[i+1] = tt.arg
			tests = append(tests, refusal{tt.name + " as " + place, args, words + tt.shown})
		}
	}
	tests = append(tests, refusal{"the first of them is named", []string{"k", "1", "a", "b", "c"}, words + "a"},
		refusal{"before its range is looked at", []string{"k", "-1", "0", "0", "q"}, words + "q"})
	refuse(t, tests)
}

func TestThrottleOutOfRange(t *testing.T) {
	const (
		zero  = "Zero rates are not supported"
		slow  = "the funnel would take more than 2^62 ns (146 years) to drain; use a smaller max_burst or period, or a larger count"
		most  = "9223372036854775807"
		least = "-9223372036854775808"
	)
	refuse(t, []refusal{
		{"count 0", []string{"k", "1", "0", "1"}, zero},
		{"period 0", []string{"k", "1", "1", "0"}, zero},
		{"both 0", []string{"k", "0", "0", "0", "0"}, zero},
		{"more than one per ns", []string{"k", "1", "1000000001", "1"}, zero},
		{"far more", []string{"k", "1", most, "1"}, zero},
		{"negative max_burst", []string{"k", "-1", "1", "1"}, "max_burst must be at least 0, got -1"},
		{"most negative max_burst", []string{"k", least, "1", "1"}, "max_burst must be at least 0, got " + least},
		{"negative count", []string{"k", "1", "-1", "1"}, "count must be at least 0, got -1"},
		{"negative period", []string{"k", "1", "1", "-1"}, "period must be at least 0, got -1"},
		{"negative period and count", []string{"k", "1", "-2", "-1"}, "count must be at least 0, got -2"},
		{"negative period, count 0", []string{"k", "1", "0", "-1"}, "period must be at least 0, got -1"},
		{"tolerance just beyond 2^62 ns", []string{"k", "0", "1", "4611686019"}, slow},
		{"tolerance beyond by the burst", []string{"k", "4611686018427387904", "1000000000", "1"}, slow},
		{"largest burst", []string{"k", most, "1000000000", "1"}, slow},
		{"longest period", []string{"k", "0", "1", most}, slow},
		{"all of it", []string{"k", most, "1", most}, slow},
		{"whatever the quantity", []string{"k", most, "1", most, "0"}, slow},
	})
	refuse(t, []refusal{
		{"capacity 0", []string{"k", "0", "1", "1"}, "max_burst must be at least 1, got 0"},
		{"capacity -1", []string{"k", "-1", "1", "1"}, "max_burst must be at least 1, got -1"},
		{"capacity and tolerance", []string{"k", most, "1", "1"}, slow},
	}, commandstest.WithReading(funnel.Capacity))
}

// TestKeyTooLong: every command that takes keys refuses long ones, before it does anything.
func TestKeyTooLong(t *testing.T) {
	r := commandstest.New()
	s := r.Session()
	long, longest := strings.Repeat("k", commandstest.MaxKeyBytes+1), strings.Repeat("k", commandstest.MaxKeyBytes)
	const refused = "-ERR key is longer than 4096 bytes, the limit of --max-key-bytes\r\n"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"CL.THROTTLE", long, "1", "1", "1"}, refused},
		{[]string{"CL.THROTTLE", long}, refused},
		{[]string{"EXISTS", long}, refused},
		{[]string{"EXISTS", "a", long, "b"}, refused},
		{[]string{"TTL", long}, refused},
		{[]string{"PTTL", long}, refused},
		{[]string{"CL.THROTTLE", "a", "1", "1", "60"}, resptest.Ints(0, 2, 1, -1, 60)},
		{[]string{"DEL", "a", long}, refused},
		{[]string{"UNLINK", long, "a"}, refused},
		{[]string{"DBSIZE"}, ":1\r\n"},
		{[]string{"CL.THROTTLE", longest, "1", "1", "60"}, resptest.Ints(0, 2, 1, -1, 60)},
		{[]string{"EXISTS", longest, longest}, ":2\r\n"},
		{[]string{"DEL", longest, "a"}, ":2\r\n"},
		{[]string{"ECHO", long}, "$4097\r\n" + long + "\r\n"}, // no key
	} {
		if got := commandstest.Say(t, s, resptest.Encode(tt.args...)); got != tt.want {
			t.Errorf("%.50q: got %.100q, want %.100q", tt.args, got, tt.want)
		}
	}
}
