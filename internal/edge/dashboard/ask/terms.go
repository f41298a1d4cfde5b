package ask

import (
	"fmt"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/limiter"
	"cellserver/internal/resp"
)

// KeyText returns a key as the address and the field have it: in quotes, too, if it reads like a whole call.
func KeyText(key []byte) string {
	text := resp.Quote(key)
	if _, isCall := readCall(text); isCall {
		return resp.QuoteWord(key)
	}
	return text
}

// TermsText formats terms as readTerms reads them; empty for none.
func (from *Source) TermsText(terms limiter.Terms) string {
	row := terms.Kind.Row()
	if terms.Numbers[0] == 0 || len(row.Arguments()) == 0 {
		return ""
	}
	text := []byte(kindName(terms.Kind))
	for _, n := range from.arguments(terms) {
		text = strconv.AppendInt(append(text, ' '), n, 10)
	}
	return string(text)
}

// arguments returns the numbers of terms as the kind's command takes them.
func (from *Source) arguments(terms limiter.Terms) []int64 {
	row, n := terms.Kind.Row(), terms.Numbers
	if terms.Kind == limiter.Funnel {
		if from.Reading == funnel.Burst {
			n[0]--
		}
		n[1], n[2] = inSeconds(terms.Unit, n[1], n[2])
	}
	return n[:len(row.Arguments())]
}

// Names in links for limits of funnels beside that of CL.THROTTLE:
const (
	byCapacity     = "tokenbucket" // by the capacity, whatever CL.THROTTLE reads
	byMilliseconds = "pthrottle"
)

// maxTermBytes bounds the terms in an address, which errors quote.
const maxTermBytes = 160

// readTerms reads a limit as links have it, such as "throttle 15 30 60": a kind and the arguments of its
// command.
func (from *Source) readTerms(by string) (s limiter.Spec, isGiven bool, err error) {
	given := strings.Fields(by[:min(len(by), maxTermBytes)])
	if len(given) == 0 {
		return s, false, nil
	}
	s.Reading = from.Reading
	named := given[0]
	switch named {
	case byCapacity:
		given[0], s.Reading = kindName(limiter.Funnel), funnel.Capacity
	case byMilliseconds:
		given[0] = kindName(limiter.Funnel)
	}
	for s.Kind = range limiter.Kinds {
		if kindName(s.Kind) == given[0] {
			break
		}
	}
	row := s.Kind.Row()
	names, given := row.Arguments(), given[1:]
	s.Unit = row.Unit
	if len(names) == 0 || len(given) < len(names) {
		return s, false, fmt.Errorf("by=%s: want a kind and its limit, such as throttle 15 30 60", resp.Quote([]byte(by[:min(len(by), maxTermBytes)])))
	}
	for i := range names {
		if s.Numbers[i], err = strconv.ParseInt(given[i], 10, 64); err != nil {
			return s, false, fmt.Errorf("%s: %s is not a whole number", names[i], resp.Quote([]byte(given[i])))
		}
	}
	if named == byMilliseconds {
		s.Unit = funnel.Milliseconds
		s = withSeconds(s)
	}
	if row.Calendar && len(given) > len(names) {
		rules, _, err := namedlimit.ReadRules(append([]string{"QUOTA", given[0]}, given[1:]...), from.Reading)
		if err == nil {
			s.Calendar, err = from.Calendars.Of(rules[0].Calendar)
		}
		if err != nil {
			return s, false, err
		}
	}
	return s, true, nil
}
