package acl

import (
	"strings"
	"testing"
)

// FuzzLoad: loading the output for a file gives the same users again.
func FuzzLoad(f *testing.F) {
	f.Add("user a on >x ~a* %R~b &c +@read -get +config|get (~x +set)\nuser default off\n")
	f.Add("user a +get|x +@all -@slow +select|0 allkeys ( %W~z allchannels -@all )")
	f.Add("\tuser b\r\n\nuser c nopass reset clearselectors " + hashOfA)
	f.Add("user d %RW~* ~( (~(x) (()\nuser e +hset -cluster|reset\nuser e off")
	f.Fuzz(func(t *testing.T, text string) {
		users := NewUsers(testCommands())
		if _, err := users.Load("f", text); err != nil {
			if strings.ContainsAny(err.Error(), "\r\n\x00") {
				t.Errorf("more than a line: %q", err)
			}
			return
		}
		shown := show(users)
		again := NewUsers(testCommands())
		result, err := again.Load("f", shown)
		if err != nil {
			t.Fatalf("%q cannot be read again: %v", shown, err)
		}
		if show(again) != shown || len(result.Ignored) != 0 {
			t.Errorf("%q became %q", shown, show(again))
		}
		if result, err := users.Load("f", shown); err != nil || len(result.Changed) != 0 {
			t.Errorf("%q changed %d users, %v", shown, len(result.Changed), err)
		}
	})
}

func show(users *Users) string {
	var b strings.Builder
	for _, u := range users.All() {
		b.WriteString(u.Line() + "\n")
	}
	return b.String()
}

// FuzzRules: the description of a user's commands produces the same set again, whatever the order of the
// rules.
func FuzzRules(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 250, 17})
	c := newCatalog(testCommands())
	var rules []string
	for _, on := range []bool{true, false} {
		for _, cmd := range c.commands {
			rules = append(rules, sign(on)+cmd.Name)
		}
		for _, category := range append(c.categories, "all") {
			rules = append(rules, sign(on)+"@"+category)
		}
	}
	rules = append(rules, "+get|x", "+SET|y", "+select|0")
	f.Fuzz(func(t *testing.T, picks []byte) {
		r := ruleReader{catalog: c}
		first, second := c.newSelector(), c.newSelector()
		for _, pick := range picks {
			if err := r.applyToSelector(&first, rules[int(pick)%len(rules)]); err != nil {
				t.Fatal(err)
			}
		}
		for _, rule := range c.describeCommands(&first) {
			if err := r.applyToSelector(&second, rule); err != nil {
				t.Fatal(err)
			}
		}
		for id, cmd := range c.commands {
			for _, arg := range []string{"", "X", "y", "0"} {
				if first.commands.has(id) != second.commands.has(id) ||
					allowsArg(&first, id, arg) != allowsArg(&second, id, arg) {
					t.Errorf("%q does not make %s %s", c.describeCommands(&first), cmd.Name, arg)
				}
			}
		}
	})
}

func allowsArg(s *selector, id int, arg string) bool {
	s.runnable = s.commands
	return s.mayRun(id, []byte(arg))
}
