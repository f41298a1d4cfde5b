package replicas

import (
	"slices"
	"strconv"
	"testing"
)

func TestDiffering(t *testing.T) {
	of := func(all ...Definition) Definitions { return NewDefinitions(all) }
	file := func(name string, digest uint64) Definition { return Definition{name, true, digest} }
	command := func(name string, digest uint64) Definition { return Definition{name, false, digest} }
	for _, tt := range []struct {
		what        string
		own, leader Definitions
		want        []string
	}{
		{"nothing", of(), of(), nil},
		{"the same", of(file("a", 1), command("b", 2)), of(command("b", 2), file("a", 1)), nil},
		{"another file", of(file("a", 1), file("plan p", 3)), of(file("a", 2), file("plan p", 4)), []string{"a", "plan p"}},
		{"no file here", of(), of(file("b", 2), file("a", 1)), []string{"a", "b"}},
		{"no file there", of(file("b", 2), file("a", 1)), of(), []string{"a", "b"}},
		{"by command on both, under way", of(command("a", 1), command("b", 1)), of(command("a", 2), command("c", 1)), nil},
		{"by command there", of(file("a", 1)), of(command("a", 2)), []string{"a"}},
		{"by command there, the same", of(file("a", 1)), of(command("a", 1)), nil},
		{"by command here, and another file", of(command("a", 1)), of(file("a", 2)), []string{"a"}},
	} {
		if got := tt.own.Differing(tt.leader); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q differ, want %q", tt.what, got, tt.want)
		}
	}
	if of().Digest == 0 || of(file("a", 1)).Digest == of(file("a", 2)).Digest || of(file("a", 1)).Digest == of(command("a", 1)).Digest {
		t.Error("digests of all are not apart")
	}
}

func TestSomeNames(t *testing.T) {
	var names []string
	for i := range 12 {
		names = append(names, strconv.Itoa(i))
	}
	if got := SomeNames(names[:2]); got != "0, 1" {
		t.Error(got)
	}
	if got := SomeNames(names); got != "0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more" {
		t.Error(got)
	}
}
