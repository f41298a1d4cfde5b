package flagvalue

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/base/duration"

	"github.com/spf13/pflag"
)

// NumberVar defines a flag for a decimal whole number.
func NumberVar[T ~int | ~int64](fs *pflag.FlagSet, p *T, name string, initial, least, most T, usage string) {
	NumberVarP(fs, p, name, "", initial, least, most, usage)
}

// NumberVarP is NumberVar with a letter.
func NumberVarP[T ~int | ~int64](fs *pflag.FlagSet, p *T, name, letter string, initial, least, most T, usage string) {
	*p = initial
	example := initial
	if initial <= 0 {
		example = min(10, most)
	}
	bounds := fmt.Sprintf("from %d to %d", least, most)
	if int64(most) == math.MaxInt64 || int64(most) == math.MaxInt {
		bounds = fmt.Sprintf("of at least %d", least)
	}
	fs.VarP(&funcValue{Func{
		Kind: "number", Takes: fmt.Sprintf("a whole number %s, such as %d", bounds, example),
		Get: func() string { return strconv.FormatInt(int64(*p), 10) },
		Set: func(text string) bool {
			n, err := strconv.ParseInt(text, 10, 64)
			if err != nil || n < int64(least) || n > int64(most) {
				return false
			}
			*p = T(n)
			return true
		},
	}}, name, letter, usage)
}

// DurationVar defines a flag for a duration: seconds, possibly with a fraction, or numbers with units. A
// maximum of math.MaxInt64 bounds nothing.
func DurationVar(fs *pflag.FlagSet, p *time.Duration, name string, initial, least, most time.Duration, usage string) {
	durationVar(fs, p, name, initial, least, most, usage, ParseDuration, func(example time.Duration) string {
		return ", or seconds, such as " + strconv.FormatFloat(example.Seconds(), 'f', -1, 64)
	})
}

// UnitDurationVar is DurationVar for settings that Redis has in milliseconds: it refuses ambiguous numbers
// without a unit.
func UnitDurationVar(fs *pflag.FlagSet, p *time.Duration, name string, initial, least, most time.Duration, usage string) {
	durationVar(fs, p, name, initial, least, most, usage, parseWithUnit, func(time.Duration) string { return ", with its unit" })
}

func durationVar(fs *pflag.FlagSet, p *time.Duration, name string, initial, least, most time.Duration, usage string,
	parse func(text string) (time.Duration, bool), form func(example time.Duration) string,
) {
	*p = initial
	example := initial
	if initial == 0 {
		example = min(30*time.Second, most)
	}
	bounds := "from " + FormatDuration(least) + " to " + FormatDuration(most)
	if most == math.MaxInt64 {
		bounds = "of at least " + FormatDuration(least)
	}
	FuncVar(fs, Func{
		Kind: "duration", Takes: "a time " + bounds + ", such as " + FormatDuration(example) + form(example),
		Get: func() string { return FormatDuration(*p) },
		Set: func(text string) bool {
			d, ok := parse(text)
			if !ok || d < least || d > most {
				return false
			}
			*p = d
			return true
		},
	}, name, usage)
}

// ParseDuration reads seconds, possibly with a fraction, or numbers with units.
func ParseDuration(text string) (d time.Duration, ok bool) {
	if text == "" || strings.Trim(text, "0123456789.") != "" {
		return parseWithUnit(text)
	}
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || seconds > math.MaxInt64/1e9-1 {
		return 0, false
	}
	return time.Duration(math.Round(seconds * 1e9)), true
}

func parseWithUnit(text string) (time.Duration, bool) {
	d, err := duration.Parse(text)
	return d, err == nil
}

// FormatDuration returns the shortest form: 1m, not 1m0s.
func FormatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// AddressVar defines a flag for host:port or nothing.
func AddressVar(fs *pflag.FlagSet, p *string, name, initial, example, usage string) {
	*p = initial
	FuncVar(fs, Func{
		Kind: "address", Takes: "host:port, such as " + example,
		Get: func() string { return *p },
		Set: func(text string) bool {
			taken := text == "" || IsAddress(text)
			if taken {
				*p = text
			}
			return taken
		},
	}, name, usage)
}

// IsAddress reports whether text is host:port; the host may be empty.
func IsAddress(text string) bool {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	return err == nil
}
