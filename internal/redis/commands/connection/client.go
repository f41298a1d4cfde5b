package connection

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
	"cellserver/internal/wire/glob"
)

func clientID(c execute.Call, conn execute.Connection, _ [][]byte) error {
	c.Reply().Int(conn.Client().ID)
	return nil
}

func clientGetName(c execute.Call, conn execute.Connection, _ [][]byte) error {
	if name := conn.Client().Name(); name != "" {
		c.Reply().BulkString(name)
	} else {
		c.Reply().Null()
	}
	return nil
}

func clientSetName(c execute.Call, conn execute.Connection, args [][]byte) error {
	if err := setName(conn, args[2]); err != nil {
		return err
	}
	return c.OK()
}

func setName(conn execute.Connection, name []byte) error {
	if err := checkClientText("Client names", name); err != nil {
		return err
	}
	conn.Client().Change(func(i *clients.Info) { i.Name = string(name) })
	return nil
}

func clientSetInfo(c execute.Call, conn execute.Connection, args [][]byte) error {
	attr := glob.Fold(args[2])
	if attr != "lib-name" && attr != "lib-ver" {
		return reply.Error("ERR Unrecognized option '" + resp.Printable(args[2]) + "'")
	}
	if err := checkClientText(attr, args[3]); err != nil {
		return err
	}
	conn.Client().Change(func(i *clients.Info) {
		if attr == "lib-name" {
			i.LibName = string(args[3])
		} else {
			i.LibVersion = string(args[3])
		}
	})
	return c.OK()
}

func clientInfo(c execute.Call, conn execute.Connection, _ [][]byte) error {
	c.Reply().Verbatim(conn.Client().Line(c.Now()))
	return nil
}

// clientList is CLIENT LIST [TYPE type] [ID id ...].
func (k *handlers) clientList(c execute.Call, args [][]byte) error {
	list := func() []*clients.Client { return k.Clients.All(func(*clients.Client) bool { return true }) }
	switch {
	case len(args) == 2:
	case len(args) == 4 && glob.Fold(args[2]) == "type":
		isType, err := ofType(args[3])
		if err != nil {
			return err
		}
		list = func() []*clients.Client { return k.Clients.All(isType) }
	case len(args) > 3 && glob.Fold(args[2]) == "id":
		ids := make([]int64, 0, len(args))
		for _, arg := range args[3:] {
			id, ok := resp.ParseInt(arg)
			if !ok {
				return reply.Error("ERR Invalid client ID")
			}
			ids = append(ids, id)
		}
		list = func() []*clients.Client { return k.Clients.ByIDs(ids) }
	default:
		return reply.ErrSyntax
	}
	var b strings.Builder
	return c.Background(func(ctx context.Context, nowNs int64) {
		for _, client := range list() {
			if ctx.Err() != nil {
				return
			}
			b.WriteString(client.Line(nowNs))
		}
	}, func(c execute.Call) error {
		c.Reply().Verbatim(b.String())
		return nil
	})
}

// ofType returns a filter by a type of Redis's.
func ofType(name []byte) (func(*clients.Client) bool, error) {
	var wanted clients.Type
	switch glob.Fold(name) {
	case "normal":
		wanted = clients.Normal
	case "pubsub":
		wanted = clients.PubSub
	case "slave", "replica":
		wanted = clients.Replica
	case "master":
		return func(*clients.Client) bool { return false }, nil
	default:
		return nil, reply.Error("ERR Unknown client type '" + resp.Printable(name) + "'")
	}
	return func(c *clients.Client) bool {
		info := c.Info()
		return info.Type() == wanted
	}, nil
}

// clientKill is CLIENT KILL addr, or CLIENT KILL filter ... where all must match.
func (k *handlers) clientKill(c execute.Call, conn execute.Connection, args [][]byte) error {
	if len(args) == 3 {
		addr := string(args[2])
		victims := k.Clients.All(func(client *clients.Client) bool { return client.Addr() == addr })
		if len(victims) == 0 {
			return reply.Error("ERR No such client")
		}
		conn.Kill(victims)
		return c.OK()
	}
	accepts, err := k.killFilter(conn.Client(), args[2:])
	if err != nil {
		return err
	}
	victims := k.Clients.All(accepts)
	conn.Kill(victims)
	c.Reply().Int(int64(len(victims)))
	return nil
}

const maxFilters = 64 // of one CLIENT KILL

// killFilter returns a filter by CLIENT KILL's options, which spares self unless SKIPME is no.
func (k *handlers) killFilter(self *clients.Client, args [][]byte) (accepts func(*clients.Client) bool, err error) {
	skipMe, all := true, []func(*clients.Client) bool(nil)
	if len(args) > 2*maxFilters { // each is applied to each client
		return nil, reply.Error("ERR more than " + strconv.Itoa(maxFilters) + " filters; send several CLIENT KILLs")
	}
	for ; len(args) > 0; args = args[2:] {
		if len(args) == 1 {
			return nil, reply.ErrSyntax
		}
		if glob.Fold(args[0]) == "skipme" {
			if skipMe, err = argument.YesNo(args[1]); err != nil {
				return nil, err
			}
			continue
		}
		accepts, err := k.killOption(glob.Fold(args[0]), args[1])
		if err != nil {
			return nil, err
		}
		all = append(all, accepts)
	}
	return func(c *clients.Client) bool {
		refuses := func(accepts func(*clients.Client) bool) bool { return !accepts(c) }
		return (!skipMe || c != self) && !slices.ContainsFunc(all, refuses)
	}, nil
}

func (k *handlers) killOption(option string, value []byte) (accepts func(*clients.Client) bool, err error) {
	switch option {
	case "id":
		id, ok := resp.ParseInt(value)
		if !ok || id < 1 {
			return nil, reply.Error("ERR client-id should be greater than 0")
		}
		return func(c *clients.Client) bool { return c.ID == id }, nil
	case "type":
		return ofType(value)
	case "addr":
		return func(c *clients.Client) bool { return c.Peer.Addr == string(value) }, nil
	case "laddr":
		return func(c *clients.Client) bool { return c.Peer.LocalAddr == string(value) }, nil
	case "user":
		if k.Users.Lookup(string(value)) == nil {
			return nil, reply.Error("ERR No such user '" + resp.Printable(value) + "'")
		}
		return func(c *clients.Client) bool { return c.Info().User == string(value) }, nil
	}
	return nil, reply.ErrSyntax
}

// setFlag returns the handler of ON|OFF.
func setFlag(of func(i *clients.Info) *bool) func(c execute.Call, conn execute.Connection, args [][]byte) error {
	return func(c execute.Call, conn execute.Connection, args [][]byte) error {
		on, err := argument.OnOff(args[2])
		if err != nil {
			return err
		}
		conn.Client().Change(func(i *clients.Info) { *of(i) = on })
		return c.OK()
	}
}

// clientUnblock is CLIENT UNBLOCK id [TIMEOUT|ERROR].
func (k *handlers) clientUnblock(c execute.Call, conn execute.Connection, args [][]byte) error {
	if len(args) > 4 {
		return reply.UnknownOrArity(args)
	}
	if len(args) == 4 && glob.Fold(args[3]) != "timeout" && glob.Fold(args[3]) != "error" {
		return reply.Error("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR")
	}
	id, ok := resp.ParseInt(args[2])
	if !ok {
		return reply.ErrNotInteger
	}
	unblocked := 0
	for _, client := range k.Clients.ByIDs([]int64{id}) {
		if conn.Unblock(client, len(args) == 4 && glob.Fold(args[3]) == "error") {
			unblocked = 1
		}
	}
	c.Reply().Int(int64(unblocked))
	return nil
}

// clientReply is CLIENT REPLY ON|OFF|SKIP. Only ON has a reply.
func clientReply(c execute.Call, conn execute.Connection, args [][]byte) error {
	switch glob.Fold(args[2]) {
	case "on":
		conn.Replies(true)
		c.Reply().OK()
	case "off":
		conn.Replies(false)
	case "skip":
		conn.SkipReply()
	default:
		return reply.ErrSyntax
	}
	return nil
}
