package calendar

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// Start is the beginning of windows within their unit, counted from the natural one, which is 0: minutes of a
// day, days of a week or month, and for a year 31 for each month plus days.
type Start uint16

const (
	minutesPerDay = 24 * 60
	daysPerWeek   = 7
	longestMonth  = 31
	monthsPerYear = 12
	leapYear      = 2000 // any
)

// ParseStart returns the start that a text describes: HH:MM of a day, 1 (Monday) to 7 of a week, 1 to 31 of a
// month, MM-DD of a year.
func ParseStart(e Every, text []byte) (Start, error) {
	switch e {
	case Day:
		hour, minute, ok := pair(text, ':')
		if !ok || hour > 23 || minute > 59 {
			return 0, startError(e, "HH:MM, such as 06:00", text)
		}
		return Start(hour*60 + minute), nil
	case Week:
		day, ok := number(text)
		if !ok || day > daysPerWeek {
			return 0, startError(e, "1 (Monday) to 7 (Sunday)", text)
		}
		return Start(day - 1), nil
	case Month:
		day, ok := number(text)
		if !ok || day > longestMonth {
			return 0, startError(e, "a day from 1 to 31", text)
		}
		return Start(day - 1), nil
	case Year:
		month, day, ok := pair(text, '-')
		start := Start((month-1)*longestMonth + day - 1)
		if !ok || month < 1 || day < 1 || day > longestMonth || !start.valid(Year) {
			return 0, startError(e, "MM-DD, such as 04-01", text)
		}
		return start, nil
	default:
		return 0, noStart()
	}
}

// Text returns the text that ParseStart reads, "" for the natural start.
func (s Start) Text(e Every) string {
	if s == 0 {
		return ""
	}
	switch e {
	case Day:
		return fmt.Sprintf("%02d:%02d", s/60, s%60)
	case Week, Month:
		return strconv.Itoa(int(s) + 1)
	case Year:
		month, day := s.date()
		return fmt.Sprintf("%02d-%02d", month, day)
	default:
		return ""
	}
}

func (s Start) date() (month time.Month, day int) {
	return time.Month(s/longestMonth + 1), int(s%longestMonth) + 1
}

// valid reports whether some window of a unit has this start.
func (s Start) valid(e Every) bool {
	switch e {
	case Day:
		return s < minutesPerDay
	case Week:
		return s < daysPerWeek
	case Month:
		return s < longestMonth
	case Year:
		month, day := s.date()
		return month <= monthsPerYear && day <= lengthOfMonth(leapYear, month)
	default:
		return s == 0
	}
}

// pair reads two numbers of two digits each.
func pair(text []byte, separator byte) (first, second int, ok bool) {
	if len(text) != 5 || text[2] != separator {
		return 0, 0, false
	}
	for _, i := range [...]int{0, 1, 3, 4} {
		if text[i] < '0' || text[i] > '9' {
			return 0, 0, false
		}
	}
	digits := func(i int) int { return int(text[i]-'0')*10 + int(text[i+1]-'0') }
	return digits(0), digits(3), true
}

// number reads a number from 1 to 99 without leading zeros.
func number(text []byte) (n int, ok bool) {
	parsed, err := strconv.ParseUint(string(text), 10, 8)
	return int(parsed), err == nil && len(text) <= 2 && text[0] != '0'
}

func noStart() error {
	return errors.New("a start requires windows of a day or longer; use DAY, WEEK, MONTH or YEAR, or leave out the start")
}

func startError(e Every, form string, text []byte) error {
	return errors.New("start of a " + e.String() + " must be " + form + ", got " + quoted(text))
}

// mostQuoted bounds the bytes of a client's text in an error.
const mostQuoted = 64

// quoted returns a text in quotes, on one line.
func quoted(text []byte) string {
	rest := ""
	if len(text) > mostQuoted {
		text, rest = text[:mostQuoted], "..."
	}
	printable := make([]byte, len(text))
	for i, b := range text {
		printable[i] = b
		if b < ' ' || b > '~' || b == '\'' {
			printable[i] = '?'
		}
	}
	return "'" + string(printable) + "'" + rest
}
