package flagvalue

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func TestDurations(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"30": 30 * time.Second, "0.5": 500 * time.Millisecond, ".5": 500 * time.Millisecond, "0": 0, "0.000000001": 1,
		"1m30s": 90 * time.Second, "500ms": 500 * time.Millisecond, "-1s": -time.Second, "9000000000": 9000000000 * time.Second,
	} {
		if got, ok := ParseDuration(text); !ok || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, ok, want)
		}
	}
	for _, text := range []string{
		"9223372036", "99999999999999999999", "", ".", "1.5.5", "-1", "1e3", "0x10", "Inf", " 5", "5 ", "soon",
	} {
		if got, ok := ParseDuration(text); ok {
			t.Errorf("%q: got %v, want none", text, got)
		}
	}
	for d, want := range map[time.Duration]string{
		0: "0", time.Second: "1s", time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour: "1h", time.Hour + time.Second: "1h0m1s",
		100 * time.Minute: "1h40m", 50 * time.Millisecond: "50ms", 10 * time.Second: "10s",
	} {
		if got := FormatDuration(d); got != want {
			t.Errorf("%v: got %s, want %s", d, got, want)
		}
		if again, ok := ParseDuration(want); !ok || again != d {
			t.Errorf("%s is read as %v", want, again)
		}
	}
}

// TestValues: accepted texts change a flag, others do not.
func TestValues(t *testing.T) {
	var number int
	var signed int64
	var long, short time.Duration
	var word, addr string
	var on, bare bool
	var list []string
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	NumberVar(fs, &number, "number", 5, 1, 10, "")
	NumberVar(fs, &signed, "signed", -1, -1, math.MaxInt64, "")
	DurationVar(fs, &long, "long", time.Minute, 0, math.MaxInt64, "")
	UnitDurationVar(fs, &short, "short", 50*time.Millisecond, time.Millisecond, time.Minute, "")
	ChoiceVar(fs, &word, "word", "", "", "ask", "tell")
	AddressVar(fs, &addr, "addr", "", "127.0.0.1:1", "")
	SwitchVar(fs, &on, "switch", "on", "off", "")
	BoolVar(fs, &bare, "bare", "")
	ListVar(fs, &list, "list", "", "short words, such as a,b", func(word string) bool { return len(word) == 1 })
	for _, tt := range []struct{ flag, text, want, err string }{
		{"number", "10", "10", ""},
		{"number", "11", "10", `number takes a whole number from 1 to 10, such as 5; got "11"`},
		{"number", "0x1", "10", `number takes a whole number from 1 to 10, such as 5; got "0x1"`},
		{"signed", "-2", "-1", `signed takes a whole number of at least -1, such as 10; got "-2"`},
		{"long", "30", "30s", ""},
		{"long", "-1s", "30s", `long takes a time of at least 0, such as 1m, or seconds, such as 60; got "-1s"`},
		{"short", "1s", "1s", ""},
		{"short", "5", "1s", `short takes a time from 1ms to 1m, such as 50ms, with its unit; got "5"`},
		{"word", "tell", "tell", ""},
		{"word", "tel", "tell", `word takes ask or tell; got "tel"; did you mean tell?`},
		{"word", "", "", ""},
		{"addr", "[::1]:80", "[::1]:80", ""},
		{"addr", ":80", ":80", ""},
		{"addr", "host", ":80", `addr takes host:port, such as 127.0.0.1:1; got "host"`},
		{"addr", "host:http", ":80", `addr takes host:port, such as 127.0.0.1:1; got "host:http"`},
		{"addr", "", "", ""},
		{"switch", "true", "on", ""},
		{"switch", "no", "off", ""},
		{"switch", "onn", "off", `switch takes on or off; got "onn"; did you mean on?`},
		{"bare", "true", "true", ""},
		{"bare", "2", "true", `bare takes true or false; got "2"`},
		{"list", "a,b", "a,b", ""},
		{"list", "c", "a,b,c", ""},
		{"list", "dd", "a,b,c", `list takes short words, such as a,b; got "dd"`},
	} {
		f := fs.Lookup(tt.flag)
		err := f.Value.Set(tt.text)
		if err != nil {
			err = Describe(tt.flag, tt.text, err)
		}
		if (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err || f.Value.String() != tt.want {
			t.Errorf("%s %q: %q, %v", tt.flag, tt.text, f.Value, err)
		}
	}
	if err := fs.Lookup("list").Value.(*List).Replace([]string{"x"}); err != nil || !slices.Equal(list, []string{"x"}) {
		t.Errorf("replaced: %q, %v", list, err)
	}
	if err := Describe("x", "y", errors.New("strconv")); err.Error() != `x takes true or false; got "y"` {
		t.Error(err)
	}
}
