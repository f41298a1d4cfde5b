package ratelimit

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"cellserver/internal/base/flagvalue"
)

// Environment looks up a variable, as os.LookupEnv does.
type Environment func(name string) (value string, ok bool)

// kind is how github.com/kelseyhightower/envconfig reads a variable. One that is set to nothing is read, too:
// only of a text, pairs and words that is no mistake.
type kind uint8

const (
	text kind = iota
	truth
	whole
	whole64
	fraction32
	fraction64
	period
	pairs
	words
)

// takes says what a kind reads.
func (k kind) takes() string {
	switch k {
	case truth:
		return "true or false"
	case whole, whole64:
		return "a whole number, such as 8080"
	case fraction32, fraction64:
		return "a number, such as 0.8"
	case period:
		return "a time with its unit, such as 10s"
	case pairs:
		return "NAME:TEXT, separated by commas, without other colons"
	case text, words:
	}
	return "any text"
}

func (k kind) accepts(given string) bool {
	var err error
	switch k {
	case truth:
		_, err = strconv.ParseBool(given)
	case whole:
		_, err = strconv.ParseInt(given, 0, strconv.IntSize)
	case whole64:
		_, err = strconv.ParseInt(given, 0, 64)
	case fraction32:
		_, err = strconv.ParseFloat(given, 32)
	case fraction64:
		_, err = strconv.ParseFloat(given, 64)
	case period:
		_, err = time.ParseDuration(given)
	case pairs:
		_, ok := pairsOf(given)
		return ok
	case text, words:
	}
	return err == nil
}

// pairsOf reads NAME:TEXT,NAME:TEXT. Spaces belong to the texts.
func pairsOf(given string) (all map[string]string, ok bool) {
	all = map[string]string{}
	if strings.TrimSpace(given) == "" {
		return all, true
	}
	for one := range strings.SplitSeq(given, ",") {
		parts := strings.Split(one, ":")
		if len(parts) != 2 {
			return nil, false
		}
		all[parts[0]] = parts[1]
	}
	return all, true
}

// values are those of all variables: set, or defaults.
type values struct {
	texts map[string]string
	given map[string]bool
}

// read reads all variables. The error has each mistake.
func read(lookup Environment) (values, error) {
	v := values{map[string]string{}, map[string]bool{}}
	var wrong []error
	for _, one := range variables() {
		value, ok := lookup(one.name)
		if !ok {
			v.texts[one.name] = one.initial
			continue
		}
		if !one.kind.accepts(value) {
			wrong = append(wrong, mistake(one.name, one.kind.takes(), value))
			continue
		}
		v.texts[one.name], v.given[one.name] = value, true
	}
	return v, errors.Join(wrong...)
}

// mistake says what a variable takes.
func mistake(name, takes, given string) error {
	if given == "" {
		takes += ", or must be unset"
	}
	return flagvalue.Describe(name, given, &flagvalue.Wrong{Takes: takes, Secret: name == xdsHeaders})
}

func (v values) text(name string) string { return v.texts[name] }

func (v values) truth(name string) bool {
	is, _ := strconv.ParseBool(v.texts[name]) // checked
	return is
}

func (v values) whole(name string) int64 {
	n, _ := strconv.ParseInt(v.texts[name], 0, 64)
	return n
}

// ratio returns a part that is not 0, which would stand for a default.
func (v values) ratio(name string) float32 {
	part, _ := strconv.ParseFloat(v.texts[name], 32)
	if part == 0 {
		return math.SmallestNonzeroFloat32
	}
	return float32(part)
}

func (v values) period(name string) time.Duration {
	d, _ := time.ParseDuration(v.texts[name])
	return d
}

func (v values) pairs(name string) map[string]string {
	all, _ := pairsOf(v.texts[name])
	return all
}

// unused lists the variables that are set and do nothing here, but for those that turn something off.
func (v values) unused() (names []string) {
	for _, one := range variables() {
		value := v.texts[one.name]
		isOff := value == "" || one.kind == truth && !v.truth(one.name) || one.kind != truth && value == one.initial
		if one.does == "" && v.given[one.name] && !isOff {
			names = append(names, one.name)
		}
	}
	return names
}
