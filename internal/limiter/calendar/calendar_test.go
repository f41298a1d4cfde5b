package calendar

import (
	"strings"
	"testing"
)

func TestEveryOf(t *testing.T) {
	for e := range Everies {
		for _, word := range []string{e.String(), strings.ToUpper(e.String()), strings.ToUpper(e.String()[:1]) + e.String()[1:]} {
			if got, ok := EveryOf([]byte(word)); !ok || got != e {
				t.Errorf("%s: got %s, %t", word, got, ok)
			}
		}
	}
	for _, word := range []string{"", "seconds", "da", "daY ", "\x04ay", "ſecond", "everies"} {
		if e, ok := EveryOf([]byte(word)); ok {
			t.Errorf("%q: got %s", word, e)
		}
	}
	word := []byte("YEAR")
	if n := testing.AllocsPerRun(100, func() { EveryOf(word) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestStarts(t *testing.T) {
	for _, tt := range []struct {
		every Every
		texts string
	}{
		{Day, "00:01 06:00 12:30 23:59"},
		{Week, "2 3 4 5 6 7"},
		{Month, "2 9 10 28 29 30 31"},
		{Year, "01-02 02-28 02-29 04-30 12-31"},
	} {
		seen := map[Start]bool{}
		for _, text := range strings.Fields(tt.texts) {
			start, err := ParseStart(tt.every, []byte(text))
			if err != nil || start == 0 || seen[start] || start.Text(tt.every) != text {
				t.Errorf("%s %s: got %d, %q, %v", tt.every, text, start, start.Text(tt.every), err)
			}
			if err := (Spec{Every: tt.every, Zone: "Europe/Berlin", Start: start}).Check(); err != nil {
				t.Errorf("%s %s: %v", tt.every, text, err)
			}
			seen[start] = true
		}
	}
	for e, text := range map[Every]string{Day: "00:00", Week: "1", Month: "1", Year: "01-01"} {
		if start, err := ParseStart(e, []byte(text)); err != nil || start != 0 || start.Text(e) != "" {
			t.Errorf("the natural start of a %s: got %d, %q, %v", e, start, start.Text(e), err)
		}
	}
}

func TestStartErrors(t *testing.T) {
	for _, tt := range []struct {
		every       Every
		texts, want string
	}{
		{Day, "|6|6:00|06:0|24:00|00:60|06-00|06:00:00|-1:00|0a:00", "start of a day must be HH:MM, such as 06:00, got '"},
		{Week, "|0|8|01|Monday|10|-1", "start of a week must be 1 (Monday) to 7 (Sunday), got '"},
		{Month, "|0|32|01|+1|310|1.5", "start of a month must be a day from 1 to 31, got '"},
		{Year, "|1|04-31|02-30|00-01|13-01|01-00|01-32|12-32|4-1|04:01", "start of a year must be MM-DD, such as 04-01, got '"},
	} {
		for text := range strings.SplitSeq(tt.texts, "|") {
			start, err := ParseStart(tt.every, []byte(text))
			if err == nil || err.Error() != tt.want+text+"'" {
				t.Errorf("%s %q: got %d, %v", tt.every, text, start, err)
			}
		}
	}
	for e := Second; e < Day; e++ {
		if _, err := ParseStart(e, []byte("1")); err == nil || !strings.Contains(err.Error(), "use DAY") {
			t.Errorf("%s: got %v", e, err)
		}
	}
	_, err := ParseStart(Day, []byte("\r\n'"+strings.Repeat("x", 100)))
	if want := "got '???" + strings.Repeat("x", 61) + "'..."; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("a long text: got %v", err)
	}
}

// FuzzParseStart: what is read is a start of its unit, and its text is the same again.
func FuzzParseStart(f *testing.F) {
	for e, text := range map[Every]string{Day: "06:00", Week: "7", Month: "31", Year: "02-29"} {
		f.Add(uint8(e), []byte(text))
	}
	f.Fuzz(func(t *testing.T, every uint8, text []byte) {
		e := Every(every)
		start, err := ParseStart(e, text)
		if err != nil {
			if message := err.Error(); start != 0 || len(message) > 200 || strings.ContainsAny(message, "\r\n") {
				t.Errorf("%q: got %d, %q", text, start, message)
			}
			return
		}
		if again := start.Text(e); again != string(text) && start != 0 || !start.valid(e) {
			t.Errorf("%q: got %q again", text, again)
		}
	})
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		want string // part of the error; "" for none
	}{
		{Spec{}, ""},
		{Spec{Every: Everies}, "use SECOND, MINUTE"},
		{Spec{Every: Hour, Zone: "UTC"}, ""},
		{Spec{Every: Hour, Zone: "Europe/Berlin"}, "time zone requires windows of a day or longer"},
		{Spec{Every: Hour, Start: 1}, "start requires windows of a day or longer"},
		{Spec{Every: Day, Zone: "Europe/Berlin", Start: 360}, ""},
		{Spec{Every: Hour, Epoch: true}, ""},
		{Spec{Every: Year, Epoch: true, Zone: "UTC"}, ""},
		{Spec{Every: Year, Epoch: true, Zone: "Europe/Berlin"}, "no time zone; leave out"},
		{Spec{Every: Year, Epoch: true, Start: 1}, "no start; leave out"},
		{Spec{Every: Day, Start: 24 * 60}, "not in a day"},
		{Spec{Every: Week, Start: 7}, "not in a week"},
		{Spec{Every: Month, Start: 31}, "not in a month"},
		{Spec{Every: Year, Start: 31 + 29}, "not in a year"},
		{Spec{Every: Year, Start: 65535}, "not in a year"},
	} {
		err := tt.spec.Check()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: got %v, want %q", tt.spec, err, tt.want)
		}
	}
}
