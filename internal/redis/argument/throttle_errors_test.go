package argument

import (
	"strings"
	"testing"

	"cellserver/internal/funnel"
	"cellserver/internal/redis/reply"
	"cellserver/internal/store"
)

// refuse checks the error of CL.THROTTLE for arguments.
func refuse(t *testing.T, reading funnel.Reading, args []string, want string) {
	t.Helper()
	call := [][]byte{[]byte("cl.throttle")}
	for _, arg := range args {
		call = append(call, []byte(arg))
	}
	err := Requests(registry(t))["cl.throttle"](&store.Request{}, 0, call, reading, new(Names))
	if want := "Cell error: Store error: " + want; err == nil || reply.Text(err) != want {
		t.Errorf("%.80q: got %v, want %s", args, err, want)
	}
}

func TestThrottleUsage(t *testing.T) {
	many := strings.Split(strings.Repeat("1", 100), "")
	for _, args := range [][]string{nil, many[:1], many[:2], many[:3], many[:6], many, {"k", "x", "y"}} {
		refuse(t, funnel.Burst, args, "Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]")
	}
}

func TestThrottleNotAnInteger(t *testing.T) {
	const words = "Couldn't parse as integer: "
	for _, tt := range []struct{ arg, shown string }{
		{"", ""},
		{"-", "-"},
		{"+", "+"},
		{"+-1", "+-1"},
		{" 1", " 1"},
		{"1 ", "1 "},
		{"1.0", "1.0"},
		{"1e3", "1e3"},
		{"0x1", "0x1"},
		{"1_000", "1_000"},
		{"ten", "ten"},
		{"9223372036854775808", "9223372036854775808"},
		{"-9223372036854775809", "-9223372036854775809"},
		{"18446744073709551616", "18446744073709551616"},
		{"+0009223372036854775808", "+0009223372036854775808"},
		{"1/", "1/"},
		{"1:", "1:"},
		{"１", "１"},
		{"1\x00", `1\x00`},
		{"1\n", `1\n`},
		{"\x1b[2J\x07\t\x7f", `\x1b[2J\x07\t\x7f`},
		{"\u009b1", `\xc2\x9b1`},
		{"\xff\xc3", `\xff\xc3`},
		{"\u202e1", `\xe2\x80\xae1`},
		{"1\r\n+OK\r\n", `1\r\n+OK\r\n`},
		{strings.Repeat("x", 100), strings.Repeat("x", 64)},
		{strings.Repeat("9", 100), strings.Repeat("9", 64)},
		{strings.Repeat("x", 61) + "\x00\x00", strings.Repeat("x", 61)},
		{strings.Repeat("x", 62) + "漢", strings.Repeat("x", 62)},
	} {
		for place := 1; place <= 4; place++ {
			args := []string{"k", "1", "1", "1", "1"}
			args[place] = tt.arg
			refuse(t, funnel.Burst, args, words+tt.shown)
		}
	}
	refuse(t, funnel.Burst, []string{"k", "1", "a", "b", "c"}, words+"a")  // the first
	refuse(t, funnel.Burst, []string{"k", "-1", "0", "0", "q"}, words+"q") // before ranges
}

func TestThrottleOutOfRange(t *testing.T) {
	const (
		zero  = "Zero rates are not supported"
		slow  = "the funnel would take more than 2^62 ns (146 years) to drain; use a smaller max_burst or period, or a larger count"
		most  = "9223372036854775807"
		least = "-9223372036854775808"
	)
	for _, tt := range []struct {
		reading funnel.Reading
		args    []string
		want    string
	}{
		{funnel.Burst, []string{"k", "1", "0", "1"}, zero},
		{funnel.Burst, []string{"k", "1", "1", "0"}, zero},
		{funnel.Burst, []string{"k", "0", "0", "0", "0"}, zero},
		{funnel.Burst, []string{"k", "1", "1000000001", "1"}, zero},
		{funnel.Burst, []string{"k", "1", most, "1"}, zero},
		{funnel.Burst, []string{"k", "-1", "1", "1"}, "max_burst must be at least 0, got -1"},
		{funnel.Burst, []string{"k", least, "1", "1"}, "max_burst must be at least 0, got " + least},
		{funnel.Burst, []string{"k", "1", "-1", "1"}, "count must be at least 0, got -1"},
		{funnel.Burst, []string{"k", "1", "1", "-1"}, "period must be at least 0, got -1"},
		{funnel.Burst, []string{"k", "1", "-2", "-1"}, "count must be at least 0, got -2"},
		{funnel.Burst, []string{"k", "1", "0", "-1"}, "period must be at least 0, got -1"},
		{funnel.Burst, []string{"k", "0", "1", "4611686019"}, slow},
		{funnel.Burst, []string{"k", "4611686018427387904", "1000000000", "1"}, slow},
		{funnel.Burst, []string{"k", most, "1000000000", "1"}, slow},
		{funnel.Burst, []string{"k", "0", "1", most}, slow},
		{funnel.Burst, []string{"k", most, "1", most}, slow},
		{funnel.Burst, []string{"k", most, "1", most, "0"}, slow},
		{funnel.Capacity, []string{"k", "0", "1", "1"}, "max_burst must be at least 1, got 0"},
		{funnel.Capacity, []string{"k", "-1", "1", "1"}, "max_burst must be at least 1, got -1"},
		{funnel.Capacity, []string{"k", most, "1", "1"}, slow},
	} {
		refuse(t, tt.reading, tt.args, tt.want)
	}
}
