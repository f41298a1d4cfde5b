package acl

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/redistest"
)

// TestAsRedis gives random rules to a redis-server and to a catalog of its commands: both must show the same
// rules or refuse them with the same error, and give the same results for ACL DRYRUN.
func TestAsRedis(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	ctx := context.Background()
	client := redistest.Start(t)
	commands := redisTable(t, client)
	users := NewUsers(commands)
	random := rand.New(rand.NewPCG(1, 2))
	const rounds = 3000
	for round := range rounds {
		rules := randomRules(random, commands)
		args := []any{"acl", "setuser", "t", "reset"}
		for _, rule := range rules {
			args = append(args, rule)
		}
		want := ""
		if err := client.Do(ctx, args...).Err(); err != nil {
			_, want, _ = strings.Cut(err.Error(), "': ")
		}
		_, err := users.Load("f", "user t reset "+strings.Join(rules, " "))
		got := ""
		if err != nil {
			got = strings.TrimPrefix(err.Error(), "f:1: ")
			if strings.HasPrefix(got, "Error in applying") {
				_, got, _ = strings.Cut(got, "': ")
			}
			got, _, _ = strings.Cut(got, ". ")
			want, _, _ = strings.Cut(want, ". ")
		}
		if got != want {
			t.Fatalf("%q: got error %q, of redis-server %q", rules, got, want)
		}
		if err != nil {
			continue
		}
		compareLine(t, client, users, rules)
		for range 8 {
			compareDryRun(t, client, users, commands, random)
		}
		if t.Failed() {
			t.Fatalf("in round %d, with %q", round, rules)
		}
	}
}

// TestNames: the list of names has all commands of a redis-server, with the same subcommands.
func TestNames(t *testing.T) {
	names := redisNames()
	commands := redisTable(t, redistest.Start(t))
	for _, cmd := range commands {
		divided, ok := names[cmd.Name]
		if want := slices.ContainsFunc(commands, func(sub Command) bool { return sub.Parent == cmd.Name }); !ok || divided != want {
			t.Errorf("%s: listed %t, divided %t, should be %t", cmd.Name, ok, divided, want)
		}
	}
}

// redisTable reads a server's commands.
func redisTable(t *testing.T, client *redis.Client) (commands []Command) {
	t.Helper()
	rows, err := client.Do(context.Background(), "command").Slice()
	if err != nil {
		t.Fatal(err)
	}
	var add func(row []any, parent string)
	add = func(row []any, parent string) {
		cmd := Command{Name: row[0].(string), Parent: parent, NoAuth: slices.Contains(row[2].([]any), any("no_auth"))}
		for _, category := range row[6].([]any) {
			cmd.Categories = append(cmd.Categories, strings.TrimPrefix(category.(string), "@"))
		}
		commands = append(commands, cmd)
		for _, sub := range row[9].([]any) {
			add(sub.([]any), cmd.Name)
		}
	}
	for _, row := range rows {
		add(row.([]any), "")
	}
	return commands
}

func randomRules(random *rand.Rand, commands []Command) (rules []string) {
	categories := append(strings.Fields(redisCategories), "all")
	fixed := []string{"on", "nopass", "resetpass", ">a", ">b", "<a", "allkeys", "resetkeys", "allchannels", "resetchannels",
		"%R", "&a*", "&b", "~", "+get|x", "+select|0", "+config|get", "-config", "+config", "-config|set", "+nosuch",
		"-get|x", "+@nosuch", "nocommands", "allcommands", "clearselectors", "sanitize-payload"}
	pick := func(from []string) string { return from[random.IntN(len(from))] }
	rule := func() string {
		sign := pick([]string{"+", "-", "+"})
		switch random.IntN(5) {
		case 0, 1:
			return sign + "@" + pick(categories)
		case 2, 3:
			return sign + commands[random.IntN(len(commands))].Name
		}
		return pick([]string{"~", "~", "%R~", "%W~", "%RW~"}) + pick([]string{"a", "b", "[ab]", "a?", "*b", "?*", "%R~x"})
	}
	for range 1 + random.IntN(8) {
		switch random.IntN(10) {
		case 0, 1:
			rules = append(rules, pick(fixed))
		case 2:
			rules = append(rules, "("+rule()+" "+rule()+" "+rule()+")")
		default:
			rules = append(rules, rule())
		}
	}
	return rules
}

func compareLine(t *testing.T, client *redis.Client, users *Users, rules []string) {
	t.Helper()
	lines, err := client.Do(context.Background(), "acl", "list").StringSlice()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, "user t ") })
	if got, want := sorted(users.Lookup("t").Line()), sorted(lines[i]); got != want {
		t.Errorf("%q\n got %s\nwant %s", rules, got, want)
	}
}

// sorted sorts each run of single commands, because Redis does not define their order.
func sorted(line string) string {
	words := strings.Fields(line)
	single := func(word string) bool { return (word[0] == '+' || word[0] == '-') && word[1] != '@' }
	for i := 0; i < len(words); i++ {
		end := i
		for end < len(words) && single(words[end]) {
			// The last one of a selector includes its parenthesis.
			if name, last := strings.CutSuffix(words[end], ")"); last {
				words[end] = name
				words = slices.Insert(words, end+1, ")")
			}
			end++
		}
		slices.Sort(words[i:end])
		i = max(i, end-1)
	}
	return strings.Join(words, " ")
}

func compareDryRun(t *testing.T, client *redis.Client, users *Users, commands []Command, random *rand.Rand) {
	t.Helper()
	c := []struct {
		name   string
		words  string // k is a key
		access Access
	}{
		{"get", "get k", Read},
		{"set", "set k x", Write},
		{"getset", "getset k x", Read | Write},
		{"del", "del k k", Write},
		{"mget", "mget k k k", Read},
		{"exists", "exists k k", 0},
		{"select", "select 0", 0},
		{"config|get", "config get x", 0},
		{"config|set", "config set x y", 0},
		{"auth", "auth x", 0},
		{"client|id", "client id", 0},
	}[random.IntN(11)]
	args := []any{"acl", "dryrun", "t"}
	var keys []Key
	words := strings.Fields(c.words)
	for _, word := range words {
		if word == "k" {
			word = []string{"a", "b", "ab", "x", ""}[random.IntN(5)]
			keys = append(keys, Key{[]byte(word), c.access})
		}
		args = append(args, word)
	}
	want, err := client.Do(context.Background(), args...).Text()
	if err != nil {
		t.Fatal(err)
	}
	id := slices.IndexFunc(commands, func(cmd Command) bool { return cmd.Name == c.name })
	got := "OK"
	first := args[4].(string)
	if reason, denied := users.Lookup("t").Check(id, []byte(first), keys); reason == DeniedCommand {
		got = "This user has no permissions to run the '" + c.name + "' command"
	} else if reason == DeniedKey {
		got = "This user has no permissions to access the '" + string(keys[denied].Name) + "' key"
	}
	if got != want {
		t.Errorf("%v: got %q, of redis-server %q", args, got, want)
	}
}
