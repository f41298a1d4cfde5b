package decide

import (
	"strconv"
	"strings"

	"cellserver/internal/limiter"
)

// Words returns the command, as its client would spell it, that asks what a value does: the reverse of the
// parsers. Envoy's door writes units in lower case.
func Words(command string, limit, key []byte, s *limiter.Spec, quantity int64, lower bool) [][]byte {
	words := [][]byte{[]byte(command)}
	add := func(word string) { words = append(words, []byte(word)) }
	number := func(n int64) { add(strconv.FormatInt(n, 10)) }
	if limit != nil {
		words = append(words, limit, key)
		number(quantity)
	} else {
		words = append(words, key)
		kind := s.Kind.Row()
		if command == "CL.REFUND" {
			quantity = -quantity
		}
		for i := range kind.Arguments() {
			number(s.Numbers[i])
		}
		if s.Calendar != nil {
			every := s.Calendar.Spec().Every.String()
			if !lower {
				every = strings.ToUpper(every)
			}
			add(every)
		}
		number(quantity)
		if kind.Option != "" {
			add(strings.ToUpper(kind.Option))
		}
		if s.Calendar != nil {
			for _, option := range s.Calendar.Spec().Options() {
				add(option)
			}
		}
	}
	if s.Flags&limiter.CountDenied != 0 {
		add("COUNTDENIED")
	}
	if s.Flags&limiter.Debit != 0 && command != "CL.DEBIT" {
		add("DEBIT")
	}
	if s.Flags&limiter.AtMost != 0 {
		add("ATMOST")
	}
	return words
}
