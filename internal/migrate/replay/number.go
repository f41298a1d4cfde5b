package replay

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxQuotedBytes bounds an error's quote of a field.
const maxQuotedBytes = 64

// parseInteger parses an int64 as CL.THROTTLE does: decimal, with an optional sign and no spaces.
func parseInteger(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange):
		return 0, fmt.Errorf("%s does not fit in 64 bits", quoted(s))
	case err != nil:
		return 0, fmt.Errorf("%s is not an integer", quoted(s))
	}
	return n, nil
}

// parseTime parses RFC 3339 or decimal Unix seconds and truncates to nanoseconds.
func parseTime(s string) (int64, error) {
	parse := parseUnixSeconds
	if len(s) > 4 && s[4] == '-' {
		parse = parseRFC3339
	}
	atNs, err := parse(s)
	return atNs, timeError(s, err, "give RFC 3339 or Unix seconds")
}

func timeError(s string, err error, hint string) error {
	switch {
	case errors.Is(err, strconv.ErrRange):
		return fmt.Errorf("%s does not fit in 64 bits of nanoseconds, the years 1677 to 2262", quoted(s))
	case err != nil:
		return fmt.Errorf("%s is not a time: %s", quoted(s), hint)
	}
	return nil
}

// parseUnixSeconds removes the point and parses one integer, as no float is precise enough.
func parseUnixSeconds(s string) (int64, error) {
	const places = 9
	var scratch [32]byte
	whole, fraction, point := strings.Cut(s, ".")
	if !endsInDigit(whole) || point && fraction == "" || strings.Trim(fraction, "0123456789") != "" {
		return 0, strconv.ErrSyntax
	}
	digits := append(scratch[:0], whole...)
	digits = append(digits, fraction[:min(len(fraction), places)]...)
	for range places - len(fraction) {
		digits = append(digits, '0')
	}
	return strconv.ParseInt(string(digits), 10, 64)
}

func endsInDigit(s string) bool {
	return s != "" && s[len(s)-1] >= '0' && s[len(s)-1] <= '9'
}

func parseRFC3339(s string) (int64, error) {
	t, err := time.Parse(time.RFC3339, s)
	// time.Parse accepts one-digit hours and a decimal comma, RFC 3339 does not: go.dev/issue/54580.
	if err != nil || s[13] != ':' || strings.Contains(s, ",") {
		return 0, strconv.ErrSyntax
	}
	return unixNs(t)
}

func unixNs(t time.Time) (int64, error) {
	atNs := t.UnixNano()
	if !time.Unix(0, atNs).Equal(t) {
		return 0, strconv.ErrRange
	}
	return atNs, nil
}

// quoted returns text from the trace, shortened and on one line.
func quoted(s string) string {
	if len(s) > maxQuotedBytes {
		return strconv.Quote(s[:maxQuotedBytes]) + "..."
	}
	return strconv.Quote(s)
}
