package namedlimit

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/base/nearest"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/limiter/calendar"
)

// Usage of the words of a command that define a policy.
const (
	RuleUsage = "FUNNEL max_burst count period | TOKENBUCKET capacity refill period | FIXEDWINDOW max period | " +
		"SLIDINGWINDOW max period [APPROX] | QUOTA max unit [TZ zone] [START start]"
	BlockUsage  = "BLOCK seconds [EACH]" // behind any rule
	PolicyUsage = "PLAN plan | rules | DENY | UNLIMITED"
)

// Words returns a rule as a command takes it. Its name is left out.
func (r *Rule) Words(reading funnel.Reading) []string {
	words, shown := []string{r.Algorithm.word()}, *r
	if r.Algorithm == Funnel {
		shown.Capacity = r.MaxBurst(reading)
	}
	for _, n := range shown.Numbers() {
		words = append(words, strconv.FormatInt(*n.Value, 10))
	}
	switch r.Algorithm {
	case ApproximateWindow:
		words = append(words, "APPROX")
	case Quota:
		words = append(append(words, strings.ToUpper(r.Calendar.Every.String())), r.Calendar.Options()...)
	default:
	}
	if r.BlockSec > 0 {
		words = append(words, "BLOCK", strconv.FormatInt(r.BlockSec, 10))
	}
	if r.BlockEach {
		words = append(words, "EACH")
	}
	return words
}

// Text returns a rule as a command takes it, after its name if it has one.
func (r *Rule) Text(reading funnel.Reading) string {
	text := strings.Join(r.Words(reading), " ")
	if r.Name != "" {
		return r.Name + ": " + text
	}
	return text
}

// Words returns a policy as a command takes it.
func (p *Policy) Words(reading funnel.Reading) []string {
	switch {
	case p.Constant == limiter.Deny:
		return []string{"DENY"}
	case p.Constant == limiter.Unlimited:
		return []string{"UNLIMITED"}
	case p.Plan != "":
		return []string{"PLAN", p.Plan}
	}
	var words []string
	for i := range p.Rules {
		words = append(words, p.Rules[i].Words(reading)...)
	}
	return words
}

// ReadPolicy reads the first words of a policy, and returns those that follow. A plan has no rules yet.
func ReadPolicy(words []string, reading funnel.Reading) (p Policy, rest []string, err error) {
	if len(words) == 0 {
		return p, nil, errors.New("a rule is missing; write " + PolicyUsage)
	}
	switch strings.ToUpper(words[0]) {
	case "DENY":
		return Policy{Constant: limiter.Deny}, words[1:], nil
	case "UNLIMITED":
		return Policy{Constant: limiter.Unlimited}, words[1:], nil
	case "PLAN":
		if len(words) < 2 {
			return p, nil, errors.New("PLAN needs the name of a plan")
		}
		return Policy{Plan: words[1]}, words[2:], nil
	}
	if _, ok := algorithmOfWord(words[0]); !ok {
		return p, nil, unknown(words[0], PolicyUsage+"; a rule is "+RuleUsage+"; behind it may be "+BlockUsage, "DENY", "UNLIMITED", "PLAN")
	}
	p.Rules, rest, err = ReadRules(words, reading)
	return p, rest, err
}

// algorithmOfWord takes the words of a command and those of a file, in any case.
func algorithmOfWord(word string) (a Algorithm, ok bool) {
	for a := range Algorithms {
		if a != ApproximateWindow && strings.EqualFold(a.word(), word) || strings.EqualFold(a.String(), word) {
			return a, true
		}
	}
	return 0, false
}

// unknown returns an error for a word that begins neither a rule nor one of some others.
func unknown(word, usage string, others ...string) error {
	known := others
	for a := range Algorithms {
		known = append(known, a.word(), strings.ToUpper(a.String()))
	}
	hint := "; write "
	if meant := nearest.Word(strings.ToUpper(word), known); meant != "" {
		hint = "; did you mean " + meant + "? Write "
	}
	return fmt.Errorf("unknown word '%s'%s%s", word, hint, usage)
}

// ReadRules reads rules as far as they go.
func ReadRules(words []string, reading funnel.Reading) (rules []Rule, rest []string, err error) {
	for len(words) > 0 {
		if _, ok := algorithmOfWord(words[0]); !ok {
			break
		}
		if len(rules) == MaxRules {
			return nil, nil, fmt.Errorf("a limit must have 1 to %d rules", MaxRules)
		}
		var r Rule
		if r, words, err = readRule(words, reading); err != nil {
			return nil, nil, err
		}
		rules = append(rules, r)
	}
	switch {
	case len(rules) > 0:
		return rules, words, nil
	case len(words) > 0:
		return nil, nil, unknown(words[0], RuleUsage)
	}
	return nil, nil, fmt.Errorf("a rule is missing; write %s", RuleUsage)
}

// usage returns the algorithm's part of RuleUsage.
func (a Algorithm) usage() string {
	all := strings.Split(RuleUsage, " | ")
	return all[slices.IndexFunc(all, func(usage string) bool { return strings.HasPrefix(usage, a.word()+" ") })]
}

func readRule(words []string, reading funnel.Reading) (r Rule, rest []string, err error) {
	r.Algorithm, _ = algorithmOfWord(words[0])
	numbers := r.Numbers()
	if rest = words[1:]; len(rest) < len(numbers) {
		return r, nil, fmt.Errorf("%s has too few arguments; write %s", words[0], r.Algorithm.usage())
	}
	for i, n := range numbers {
		if *n.Value, err = strconv.ParseInt(rest[i], 10, 64); err != nil {
			unit := ""
			if n.Value == &r.PeriodSec {
				unit = "; the period is in seconds"
			}
			return r, nil, fmt.Errorf("%s: '%s' is not an integer%s; write %s", words[0], rest[i], unit, r.Algorithm.usage())
		}
	}
	rest = rest[len(numbers):]
	switch r.Algorithm {
	case Funnel:
		if wrong := r.WrongRate(); wrong != nil {
			return r, nil, wrong
		}
		var l funnel.Limit
		l, err = funnel.NewLimit(reading, r.Capacity, r.Count, r.PeriodSec)
		r.Capacity = l.Capacity()
	case SlidingWindow:
		if len(rest) > 0 && strings.EqualFold(rest[0], "APPROX") {
			r.Algorithm, rest = ApproximateWindow, rest[1:]
		}
	case Quota:
		rest, err = r.readCalendar(rest)
	default:
	}
	if err != nil {
		return r, nil, err
	}
	rest, err = r.readBlock(rest)
	return r, rest, err
}

// readBlock reads what follows a rule that blocks.
func (r *Rule) readBlock(words []string) (rest []string, err error) {
	if len(words) == 0 || !strings.EqualFold(words[0], "BLOCK") {
		return words, nil
	}
	if len(words) < 2 {
		return nil, errors.New("BLOCK has too few arguments; write " + BlockUsage)
	}
	if r.BlockSec, err = strconv.ParseInt(words[1], 10, 64); err != nil {
		return nil, fmt.Errorf("BLOCK: '%s' is not an integer; the time is in seconds; write %s", words[1], BlockUsage)
	}
	if err := CheckBlock(r.BlockSec); err != nil {
		return nil, err
	}
	if rest = words[2:]; len(rest) > 0 && strings.EqualFold(rest[0], "EACH") {
		r.BlockEach, rest = true, rest[1:]
	}
	return rest, nil
}

// readCalendar reads the unit and the options of a quota.
func (r *Rule) readCalendar(words []string) (rest []string, err error) {
	if len(words) == 0 {
		return nil, fmt.Errorf("QUOTA needs a unit; write %s", Quota.usage())
	}
	every, ok := calendar.EveryOf([]byte(words[0]))
	if !ok {
		return nil, fmt.Errorf("the unit of QUOTA must be SECOND, MINUTE, HOUR, DAY, WEEK, MONTH or YEAR, got '%s'", words[0])
	}
	r.Calendar.Every = every
	words = words[1:]
	given := map[string]bool{}
	for len(words) > 0 {
		option := strings.ToUpper(words[0])
		switch {
		case option != "EPOCH" && option != "TZ" && option != "START":
			return words, r.checkCalendar()
		case given[option]:
			return nil, fmt.Errorf("%s of QUOTA is given twice", option)
		}
		given[option] = true
		switch {
		case option == "EPOCH":
			r.Calendar.Epoch, words = true, words[1:]
			continue
		case len(words) < 2:
			return nil, fmt.Errorf("%s of QUOTA needs a value", option)
		case option == "TZ":
			r.Calendar.Zone = words[1]
		default:
			if r.Calendar.Start, err = calendar.ParseStart(every, []byte(words[1])); err != nil {
				return nil, err
			}
		}
		words = words[2:]
	}
	return words, r.checkCalendar()
}

func (r *Rule) checkCalendar() error {
	r.Calendar = r.Calendar.Normal()
	return r.Calendar.Check()
}
