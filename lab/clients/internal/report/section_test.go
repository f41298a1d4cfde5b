package report

import (
	"reflect"
	"testing"
)

func TestSectionAdd(t *testing.T) {
	var s Section
	s.Add(Section{Library: "a", Key: "k", OK: 3, Allowed: 2, Unknown: 1, LongestMs: 40, SinceMs: 40,
		Errors: map[string]int{"EOF": 1}})
	s.Add(Section{Library: "a", Key: "k", OK: 1, Refused: 2, Unsent: 4, LongestMs: 30, SinceMs: 5,
		Errors: map[string]int{"EOF": 1, "READONLY": 2}})
	want := Section{
		Library: "a", Key: "k", OK: 4, Allowed: 2, Refused: 2, Unsent: 4, Unknown: 1, LongestMs: 40, SinceMs: 5,
		Errors: map[string]int{"EOF": 2, "READONLY": 2},
	}
	if !reflect.DeepEqual(s, want) {
		t.Errorf("%+v, want %+v", s, want)
	}
}
