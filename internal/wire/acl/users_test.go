package acl

import (
	"errors"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"sync"
	"testing"
)

func TestDefaultUser(t *testing.T) {
	users := NewUsers(testCommands())
	u := users.Default()
	if u.Name() != "default" || u.Line() != "user default on nopass ~* &* +@all" || !u.Unrestricted() || u.NeedsPassword() {
		t.Errorf("%q, unrestricted %t", u.Line(), u.Unrestricted())
	}
	if _, ok := users.Authenticate([]byte("default"), []byte("anything")); !ok {
		t.Error("no password is needed, but one is refused")
	}
}

func TestAuthenticate(t *testing.T) {
	users := loaded(t, "user a on >x >y +get", "user off >x", "user off2 off nopass", "user free on nopass", "user none on")
	for _, c := range []struct {
		name, password string
		want           bool
	}{
		{"a", "x", true},
		{"a", "y", true},
		{"a", "z", false},
		{"a", "", false},
		{"A", "x", false},
		{"off", "x", false},
		{"off2", "x", false},
		{"free", "whatever", true},
		{"none", "", false},
		{"nosuch", "x", false},
		{"nosuch", "", false},
		{"", "", false},
	} {
		u, ok := users.Authenticate([]byte(c.name), []byte(c.password))
		if ok != c.want || ok && u != users.Lookup(c.name) || !ok && u != nil {
			t.Errorf("%q with %q: %v, %t", c.name, c.password, u, ok)
		}
	}
}

func TestSetDefaultPassword(t *testing.T) {
	users := NewUsers(testCommands())
	u := users.Default()
	users.SetDefaultPassword("a")
	if want := "user default on " + hashOfA + " ~* &* +@all"; u.Line() != want || !u.NeedsPassword() || !u.Unrestricted() {
		t.Errorf("got %q, want %q", u.Line(), want)
	}
	users.SetDefaultPassword("b")
	if _, ok := users.Authenticate([]byte("default"), []byte("a")); ok {
		t.Error("the old password still works")
	}
	if got, ok := users.Authenticate([]byte("default"), []byte("b")); !ok || got != u {
		t.Error("the new password does not work")
	}

	// A file without the default user keeps its password; a file with it overrides that.
	if _, err := users.Load("f", "user a on"); err != nil {
		t.Fatal(err)
	}
	if want := "user default on " + hashOfB + " ~* &* +@all"; u.Line() != want {
		t.Errorf("got %q, want %q", u.Line(), want)
	}
	if _, err := users.Load("f", "user default on >a -@all +get"); err != nil {
		t.Fatal(err)
	}
	if want := "user default on " + hashOfA + " resetchannels -@all +get"; u.Line() != want || users.Default() != u {
		t.Errorf("got %q, want %q", u.Line(), want)
	}
	users.SetDefaultPassword("")
	if want := "user default on nopass resetchannels -@all +get"; u.Line() != want || u.Unrestricted() {
		t.Errorf("got %q, want %q", u.Line(), want)
	}
}

// TestPasswordBesideFile: the password of a setting leaves a default user of the file alone, CONFIG SET's
// does not, and a user with either can sign in.
func TestPasswordBesideFile(t *testing.T) {
	users := NewUsers(nil)
	may := func(password string) bool {
		_, ok := users.Authenticate([]byte(DefaultName), []byte(password))
		return ok
	}
	if users.AnyPassword() || users.DefaultInFile() {
		t.Error("there is a password, or a file")
	}
	users.SetPasswordWithoutFile("setting")
	if !may("setting") || !users.AnyPassword() {
		t.Error("the setting's password is not the default user's")
	}
	if _, err := users.Load("f", "user default on >file ~* &* +@all\n"); err != nil {
		t.Fatal(err)
	}
	if users.SetPasswordWithoutFile("other"); !may("file") || may("other") || !users.DefaultInFile() || !users.AnyPassword() {
		t.Error("the setting's password replaces the file's")
	}
	if users.SetDefaultPassword("other"); may("file") || !may("other") {
		t.Error("CONFIG SET's password does not replace the file's")
	}
	if _, err := users.Load("f", "user default off >file\n"); err != nil || users.AnyPassword() {
		t.Errorf("a user that is off can sign in: %v", err)
	}
}

func TestReload(t *testing.T) {
	users := loaded(t, "user same on ~a +get", "user other on ~a +get", "user gone on nopass ~* +@all", "user default on nopass +get")
	same, other, gone, def := users.Lookup("same"), users.Lookup("other"), users.Lookup("gone"), users.Default()
	if !gone.Unrestricted() {
		t.Fatal("all commands and all keys, and still restricted")
	}
	result, err := users.LoadFile(aclFile(t, "user same  on +get ~a", "user other on ~b +get +hset +hset", "user new on",
		"user default off"))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Loaded{Added: []string{"new"}, Removed: []string{"gone"}, Changed: []string{"default", "other"}, Ignored: []string{"hset"}}); !reflect.DeepEqual(result, want) {
		t.Errorf("got %+v", result)
	}
	if users.Lookup("same") != same || users.Lookup("other") != other || users.Default() != def {
		t.Error("a user that stays is another now")
	}
	if mayRead(other, "a") || !mayRead(other, "b") || mayRun(def, command(t, "get"), nil) {
		t.Error("the old rules hold")
	}
	if users.Lookup("gone") != nil || gone.Unrestricted() || gone.Enabled() || mayRun(gone, command(t, "get"), nil) ||
		mayRead(gone, "a") {
		t.Error("a user that is gone may still do something")
	}
	if !mayRun(gone, command(t, "auth"), nil) {
		t.Error("a client of a user that is gone cannot become another")
	}
	var names []string
	for _, u := range users.All() {
		names = append(names, u.Name())
	}
	if got := strings.Join(names, " "); got != "default new other same" {
		t.Errorf("users: %s", got)
	}
}

func TestLoadFileErrors(t *testing.T) {
	const unchanged = " WARNING: ACL errors detected, no change to the previously active ACL rules was performed"
	for _, c := range []struct{ name, text, want string }{
		{"comment", "# all\nuser a on", "f:1 should start with user keyword followed by the username."},
		{"other word", "\n\nUSER a on", "f:3 should start with user keyword followed by the username."},
		{"no name", "user ", "f:1 should start with user keyword followed by the username."},
		{"empty name", "user  on", "f:1: username '' contains invalid characters."},
		{"tab in a name", "user a\tb on", `f:1: username 'a\x09b' contains invalid characters.`},
		{"NUL in a name", "user a\x00b on", `f:1: username 'a\x00b' contains invalid characters.`},
		{"NUL", "user a on >x\x00y", "f:1: Syntax error."},
		{"twice", "user a on\nuser a off", "WARNING: Duplicate user 'a' found on line 2."},
		{"default twice", "user default on\nuser default on", "WARNING: Duplicate user 'default' found on line 2."},
		{"several", "user a foo bar +nosuch -nosuch #x\nuser b foo\nfoo",
			"f:1: Syntax error. f:1: Error in applying operation '+nosuch': Unknown command or category name in ACL. " +
				"f:1: Error in applying operation '-nosuch': Unknown command or category name in ACL. " +
				"f:2: Syntax error. f:3 should start with user keyword followed by the username."},
		{"as many as are told", strings.Repeat("x\n", 16), strings.Repeat(" f:N should start with user keyword followed by the username.", 16)[1:]},
		{"one more", strings.Repeat("x\n", 17), strings.Repeat("f:N should start with user keyword followed by the username. ", 16) +
			"And 1 more errors."},
		{"many", strings.Repeat("x\n", 18), strings.Repeat("f:N should start with user keyword followed by the username. ", 16) +
			"And 2 more errors."},
	} {
		t.Run(c.name, func(t *testing.T) {
			users := loaded(t, "user old on")
			_, err := users.Load("f", c.text)
			want := c.want + unchanged
			got := ""
			if err != nil {
				got = err.Error()
			}
			if strings.Contains(want, "f:N ") {
				for _, n := range []string{"16", "15", "14", "13", "12", "11", "10", "9", "8", "7", "6", "5", "4", "3", "2", "1"} {
					got = strings.ReplaceAll(got, "f:"+n+" ", "f:N ")
				}
			}
			if got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
			if users.Lookup("old") == nil || len(users.All()) != 2 {
				t.Error("the users have changed")
			}
		})
	}
	_, err := NewUsers(nil).LoadFile("/nowhere/users.acl")
	var fileError *FileError
	if !errors.As(err, &fileError) || !errors.Is(err, fs.ErrNotExist) ||
		err.Error() != "Error loading ACLs, opening file '/nowhere/users.acl': no such file or directory" {
		t.Errorf("got %v", err)
	}
	if _, err := NewUsers(nil).LoadFile(os.TempDir()); err == nil {
		t.Error("a directory was loaded")
	}
}

// TestLines: white space between and around words, verified with ACL LOAD of redis-server 7.0.15.
func TestLines(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"\n  \n\t\n", ""},
		{"\tuser a on\t\r\n", "user a on resetchannels -@all"},
		{"user a  on   ~a", "user a on ~a resetchannels -@all"},
		{"user a on  \t ~x\t ~y", "user a on ~x ~y resetchannels -@all"},
		{"user a on (~x\t+get)", "user a on resetchannels -@all (~x resetchannels -@all +get)"},
		{"user \"q\" on", "user \"q\" on resetchannels -@all"},
		{"user (a) on", "user (a) on resetchannels -@all"},
		{"user a\x01 on ~\x80\xff\"", "user a\x01 on ~\x80\xff\" resetchannels -@all"},
	} {
		users := NewUsers(testCommands())
		if _, err := users.Load("f", c.text); err != nil {
			t.Errorf("%q: %v", c.text, err)
		}
		got := ""
		for _, u := range users.All() {
			if u != users.Default() {
				got = u.Line()
			}
		}
		if got != c.want {
			t.Errorf("%q: got %q, want %q", c.text, got, c.want)
		}
	}
}

// TestConcurrentUse is for the race detector.
func TestConcurrentUse(*testing.T) {
	users := NewUsers(testCommands())
	var wait sync.WaitGroup
	for worker := range 4 {
		wait.Go(func() {
			for i := range 100 {
				text := "user a on >x ~a +get"
				if i%2 == 0 {
					text = "user b on >x ~* +@all"
				}
				if worker == 0 {
					_, _ = users.Load("f", text)
					users.SetDefaultPassword("x")
				}
				if u, ok := users.Authenticate([]byte("a"), []byte("x")); ok {
					u.Check(0, nil, []Key{{[]byte("a"), Read}})
					u.Unrestricted()
				}
				users.All()
			}
		})
	}
	wait.Wait()
}

func TestGeneratePassword(t *testing.T) {
	for _, c := range []struct{ bits, digits int }{{1, 1}, {4, 1}, {5, 2}, {256, 64}, {1024, 256}, {4096, 1024}} {
		if p, err := GeneratePassword(c.bits); err != nil || len(p) != c.digits || strings.Trim(p, "0123456789abcdef") != "" {
			t.Errorf("%d bits: %q, %v", c.bits, p, err)
		}
	}
	for _, bits := range []int{0, -1, 4097} {
		if p, err := GeneratePassword(bits); err == nil {
			t.Errorf("%d bits: %q", bits, p)
		}
	}
}

// TestReloadsDoNotLetIn: a reloaded file, which may be incompletely written, opens no access by an omission.
func TestReloadsDoNotLetIn(t *testing.T) {
	const (
		closed = "user default off\nuser a on >x +get\n"
		open   = "user default on nopass ~* &* +@all\nuser a on >x +get\n"
		empty  = "f has no users, and would remove the present ones: if that is intended, "
		lost   = "f has no user default, as whom clients could then do everything without a password: "
		pass   = "f has no user default, as whom clients could then do everything with the password of --requirepass: "
		cut    = "f has lost its final newline, so it may be incompletely written: end its last line. WARNING: ACL errors detected"
	)
	for _, tt := range []struct {
		name, requirePass, before, after string
		want                             string // what the error begins with; "" for none
		opened                           bool
	}{
		{"emptied", "", closed, "", empty, false},
		{"emptied but for lines", "", closed, "\n \n\r\n", empty, false},
		{"emptied, with a password", "pw", closed, "", empty, false},
		{"emptied, and open before", "", open, "", empty, false},
		{"emptied, without a default user before", "", "user a on\n", "", empty, false},
		{"without the default user", "", closed, "user a on >x +get\n", lost, false},
		{"without the default user, who was all", "", "user default off\n", "\n", lost, false},
		{"without the default user, who had a password", "", "user default on >x ~* &* +@all\n", "user a on\n", lost, false},
		{"without the default user, who might little", "", "user default on nopass +ping\n", "user a on\n", lost, false},
		{"without the default user, with a password", "pw", closed, "user a on >x +get\n", pass, false},
		{"without a default user, as before", "", "user a on\n", "user b on\n", "", false},
		{"without a default user, as before, with a password", "pw", "user a on\n", "user b on\n", "", false},
		{"without the default user, who was open", "", open, "user a on\n", "", false},
		{"cut in a line", "", "user default off\nuser a on ~x\n", "user default off\nuser a on ~", cut, false},
		{"never whole", "", "user default off\nuser a on ~x", "user default off\nuser a on ~", "", false},
		{"opened by its default user", "", closed, open, "", true},
		{"without a password for nothing", "", closed, "user default nopass ~* +@all off\n", "", false},
		{"open as before", "", open, open + "user b on\n", "", false},
		{"without users", "", closed, "user default off\n", "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			users := NewUsers(testCommands())
			users.SetDefaultPassword(tt.requirePass)
			if _, err := users.Load("f", tt.before); err != nil {
				t.Fatal(err)
			}
			before := show(users)
			loaded, err := users.Load("f", tt.after)
			if tt.want == "" {
				if err != nil || loaded.Opened != tt.opened {
					t.Errorf("opened: %t, %v", loaded.Opened, err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), tt.want) || show(users) != before {
				t.Errorf("got %v, and the users\n%s", err, show(users))
			}
		})
	}
}

// TestFirstFileMayLetIn, as in Redis, and says so.
func TestFirstFileMayLetIn(t *testing.T) {
	for text, opened := range map[string]bool{"": true, "user a on\n": true, "user default on nopass\n": true, "user default off\n": false, "user default on >x\n": false} {
		loaded, err := NewUsers(testCommands()).Load("f", text)
		if err != nil || !loaded.First || loaded.Opened != opened {
			t.Errorf("%q: first %t, opened %t, %v", text, loaded.First, loaded.Opened, err)
		}
	}
	users := NewUsers(testCommands())
	users.SetDefaultPassword("x")
	if loaded, err := users.Load("f", ""); err != nil || loaded.Opened {
		t.Errorf("with --requirepass: opened %t, %v", loaded.Opened, err)
	}
}
