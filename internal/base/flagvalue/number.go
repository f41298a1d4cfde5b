package flagvalue

import (
	"fmt"
	"math"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"
)

// number is a whole number within bounds.
type number[T ~int | ~int64] struct {
	to                   *T
	least, most, example T
}

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
	fs.VarP(&number[T]{p, least, most, example}, name, letter, usage)
}

func (n *number[T]) String() string { return strconv.FormatInt(int64(*n.to), 10) }

func (n *number[T]) Type() string { return "number" }

func (n *number[T]) Set(text string) error {
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil || v < int64(n.least) || v > int64(n.most) {
		bounds := fmt.Sprintf("from %d to %d", n.least, n.most)
		if int64(n.most) == math.MaxInt64 || int64(n.most) == math.MaxInt {
			bounds = fmt.Sprintf("of at least %d", n.least)
		}
		return &Wrong{Takes: fmt.Sprintf("a whole number %s, such as %d", bounds, n.example)}
	}
	*n.to = T(v)
	return nil
}

// duration is a time within bounds.
type duration struct {
	to                   *time.Duration
	least, most, example time.Duration
	needsUnit            bool
}

// DurationVar defines a flag for a duration: seconds, possibly with a fraction, or numbers with units. A
// maximum of math.MaxInt64 bounds nothing.
func DurationVar(fs *pflag.FlagSet, p *time.Duration, name string, initial, least, most time.Duration, usage string) {
	defineDuration(fs, &duration{to: p, least: least, most: most}, name, initial, usage)
}

// UnitDurationVar is DurationVar for settings that Redis has in milliseconds: it refuses ambiguous numbers
// without a unit.
func UnitDurationVar(fs *pflag.FlagSet, p *time.Duration, name string, initial, least, most time.Duration, usage string) {
	defineDuration(fs, &duration{to: p, least: least, most: most, needsUnit: true}, name, initial, usage)
}

func defineDuration(fs *pflag.FlagSet, d *duration, name string, initial time.Duration, usage string) {
	*d.to, d.example = initial, initial
	if initial == 0 {
		d.example = min(30*time.Second, d.most)
	}
	fs.Var(d, name, usage)
}

func (d *duration) String() string { return FormatDuration(*d.to) }

func (d *duration) Type() string { return "duration" }

func (d *duration) Set(text string) error {
	parse := ParseDuration
	if d.needsUnit {
		parse = parseWithUnit
	}
	v, ok := parse(text)
	if !ok || v < d.least || v > d.most {
		return &Wrong{Takes: d.takes()}
	}
	*d.to = v
	return nil
}

func (d *duration) takes() string {
	takes := "a time from " + FormatDuration(d.least) + " to " + FormatDuration(d.most)
	if d.most == math.MaxInt64 {
		takes = "a time of at least " + FormatDuration(d.least)
	}
	takes += ", such as " + FormatDuration(d.example)
	if d.needsUnit {
		return takes + ", with its unit"
	}
	return takes + ", or seconds, such as " + strconv.FormatFloat(d.example.Seconds(), 'f', -1, 64)
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
	d, err := time.ParseDuration(text)
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
