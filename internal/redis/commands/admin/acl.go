package admin

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"cellserver/internal/decide/clients"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/glob"
)

func aclWhoAmI(c execute.Call, conn execute.Connection, _ [][]byte) error {
	c.Reply().BulkString(conn.User().Name())
	return nil
}

// aclEach returns the handler that replies a text for each user.
func (k *Server) aclEach(text func(*acl.User) string) execute.Handler {
	return execute.Plain(func(c execute.Call, _ [][]byte) error {
		var texts []string
		for _, user := range k.Users.All() {
			texts = append(texts, text(user))
		}
		c.Reply().Strings(texts)
		return nil
	})
}

func (k *Server) aclGetUser(c execute.Call, args [][]byte) error {
	user := k.Users.Lookup(string(args[2]))
	if user == nil {
		c.Reply().Null()
		return nil
	}
	d := user.Describe()
	c.Reply().Map(6)
	c.Reply().BulkString("flags")
	c.Reply().StringSet(d.Flags)
	c.Reply().BulkString("passwords")
	c.Reply().Strings(d.Passwords)
	replyPermissions(c.Reply(), d.Permissions)
	c.Reply().BulkString("selectors")
	c.Reply().Array(len(d.Selectors))
	for _, selector := range d.Selectors {
		c.Reply().Map(3)
		replyPermissions(c.Reply(), selector)
	}
	return nil
}

func replyPermissions(w *resp.Writer, p acl.Permissions) {
	w.Pair("commands", p.Commands)
	w.Pair("keys", p.Keys)
	w.Pair("channels", p.Channels)
}

func (k *Server) aclCat(c execute.Call, args [][]byte) error {
	switch len(args) {
	case 2:
		c.Reply().Strings(k.Users.Categories())
	case 3:
		names, ok := k.Users.CommandsIn(string(args[2]))
		if !ok {
			return reply.Error("ERR Unknown category '" + resp.Printable(args[2]) + "'")
		}
		c.Reply().Strings(names)
	default:
		return reply.UnknownOrArity(args)
	}
	return nil
}

func aclGenPass(c execute.Call, args [][]byte) error {
	bits := int64(acl.DefaultPasswordBits)
	switch len(args) {
	case 2:
	case 3:
		n, err := argument.Int(args[2])
		if err != nil {
			return err
		}
		bits = n
	default:
		return reply.UnknownOrArity(args)
	}
	password, err := acl.GeneratePassword(int(max(min(bits, 1<<20), 0)))
	if err != nil {
		return reply.Error("ERR " + err.Error())
	}
	c.Reply().BulkString(password)
	return nil
}

func (k *Server) aclDryRun(c execute.Call, args [][]byte) error {
	user := k.Users.Lookup(string(args[2]))
	if user == nil {
		return reply.Error("ERR User '" + resp.Printable(args[2]) + "' not found")
	}
	call := args[3:]
	command := k.Catalog.Called(call)
	if command == nil || command.Refusal != "" {
		return reply.Error("ERR Command '" + resp.Printable(call[0]) + "' not found")
	}
	if !command.AcceptsArity(len(call)) {
		return reply.Arity(command)
	}
	if len(call) > command.Most() {
		return reply.TooManyArguments(command)
	}
	reason, object, refund := command.Check(user, call)
	if reason == acl.Allowed {
		return c.OK()
	}
	text := "This user has no permissions to " + dryRunText(reason, object)
	if refund {
		text += reply.RefundDenied(command)
	}
	c.Reply().BulkString(text)
	return nil
}

func dryRunText(reason acl.Reason, object string) string {
	switch reason {
	case acl.DeniedCommand:
		return "run the '" + object + "' command"
	case acl.DeniedChannel:
		return "access the '" + resp.Printable([]byte(object)) + "' channel"
	default:
		return "access the '" + resp.Printable([]byte(object)) + "' key"
	}
}

func (k *Server) aclLoad(c execute.Call, conn execute.Connection, _ [][]byte) error {
	if k.ACLFile == "" {
		return reply.Error("ERR This instance is not configured to use an ACL file. Start the server with --aclfile.")
	}
	var text string
	var err error
	read := func(context.Context, int64) { text, err = acl.ReadFile(k.ACLFile) }
	return c.Background(read, func(c execute.Call) error {
		var changed []*clients.Client
		if err == nil {
			changed, err = k.loadUsers(text)
		}
		if err != nil {
			return reply.Error("ERR " + err.Error())
		}
		conn.Kill(changed)
		return c.OK()
	})
}

// ReloadUsers reloads the ACL file, all of it or nothing, and closes the connections of users whose rules
// have changed.
func (k *Server) ReloadUsers() error {
	text, err := acl.ReadFile(k.ACLFile)
	if err != nil {
		return err
	}
	changed, err := k.loadUsers(text)
	if err != nil {
		return err
	}
	for _, client := range changed {
		client.Conn.Kill()
	}
	return nil
}

// loadUsers applies an ACL file, and returns the clients whose users were changed or removed.
func (k *Server) loadUsers(text string) (changed []*clients.Client, err error) {
	loaded, err := k.Users.Load(k.ACLFile, text)
	if err != nil {
		return nil, err
	}
	if len(loaded.Ignored) > 0 {
		k.Log.Info("the ACL file has commands of Redis that are not here; they have no effect",
			"file", k.ACLFile, "commands", strings.Join(loaded.Ignored, " "))
	}
	k.logLoaded(loaded)
	names := map[string]bool{}
	for _, name := range slices.Concat(loaded.Removed, loaded.Changed) {
		names[name] = name != acl.DefaultName
	}
	return k.Clients.All(func(client *clients.Client) bool { return names[client.Info().User] }), nil
}

// logLoaded logs the changes of a file, and warns if clients no longer need a password.
func (k *Server) logLoaded(loaded acl.Loaded) {
	attrs := []any{"file", k.ACLFile, "users", len(k.Users.All())}
	for _, group := range []struct {
		what  string
		names []string
	}{{"added", loaded.Added}, {"removed", loaded.Removed}, {"changed", loaded.Changed}} {
		if !loaded.First && len(group.names) > 0 {
			attrs = append(attrs, group.what, listed(group.names))
		}
	}
	k.Log.Info("users read", attrs...)
	if loaded.Opened {
		k.Log.Warn("with this ACL file clients require no password: in it the user default is on and nopass, or missing",
			"file", k.ACLFile, "hint", "write 'user default off' into it, unless everyone is meant to be let in")
	}
}

const maxListedNames = 32

// listed joins names, and counts those beyond maxListedNames.
func listed(names []string) string {
	if more := len(names) - maxListedNames; more > 0 {
		return strings.Join(names[:maxListedNames], " ") + " and " + strconv.Itoa(more) + " more"
	}
	return strings.Join(names, " ")
}

// aclLog is ACL LOG [count|RESET].
func (k *Server) aclLog(c execute.Call, args [][]byte) error {
	count := int64(10)
	switch {
	case len(args) > 3:
		return reply.UnknownOrArity(args)
	case len(args) == 3 && glob.Fold(args[2]) == "reset":
		k.ACLLog.Reset()
		return c.OK()
	case len(args) == 3:
		n, err := argument.Int(args[2])
		if err != nil {
			return err
		}
		count = max(n, 0)
	}
	entries := k.ACLLog.Entries(int(min(count, acl.DefaultLogEntries)))
	nowNs := c.Now()
	c.Reply().Array(len(entries))
	for i := range entries {
		replyLogEntry(c.Reply(), &entries[i], nowNs)
	}
	return nil
}

func replyLogEntry(w *resp.Writer, e *acl.LogEntry, nowNs int64) {
	w.Map(10)
	w.BulkString("count")
	w.Int(e.Count)
	w.Pair("reason", e.Reason.String())
	w.Pair("context", e.Context)
	w.Pair("object", e.Object)
	w.Pair("username", e.Username)
	w.BulkString("age-seconds")
	w.Double(e.AgeSeconds(nowNs))
	w.Pair("client-info", strings.TrimSuffix(e.ClientInfo, "\n"))
	w.BulkString("entry-id")
	w.Int(e.ID)
	w.BulkString("timestamp-created")
	w.Int(e.CreatedNs / 1e6)
	w.BulkString("timestamp-last-updated")
	w.Int(e.UpdatedNs / 1e6)
}
