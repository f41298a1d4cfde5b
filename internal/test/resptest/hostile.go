package resptest

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
)

// Hostile returns replies that would cost a trusting client gigabytes or its stack.
func Hostile() map[string]string {
	return map[string]string{
		"array": "*2147483647\r\n", "set": "~2147483647\r\n", "push": ">2147483647\r\n",
		"map": "%1073741823\r\n", "string": "$2147483646\r\n",
		"verbatim": "=2147483646\r\n", "error": "!2147483646\r\n", "overflow": "*9223372036854775807\r\n",
		"arrays in an array": "*2\r\n*2147483646\r\n", "depth": strings.Repeat("*1\r\n", 1<<20),
		"attributes": strings.Repeat("|0\r\n", 1<<20),
		"line":       "+" + strings.Repeat("x", 1<<20),
	}
}

// StartHostile runs a server that answers the named command, or all if empty, with a hostile reply, and the
// others as a Redis with one key would. It returns its address.
func StartHostile(t *testing.T, name, hostile string) string {
	t.Helper()
	return Serve(t, func(nc net.Conn) { answer(nc, name, hostile) })
}

func answer(nc net.Conn, name, hostile string) {
	r := bufio.NewReader(nc)
	for {
		words, err := ReadCommand(r)
		if err != nil {
			return
		}
		command := strings.ToLower(words[0])
		reply := usual(command, nc.LocalAddr().String())
		if name == "" || name == command {
			reply = hostile
		}
		if _, err = io.WriteString(nc, reply); err != nil {
			return
		}
	}
}

func usual(command, addr string) string {
	_, port, _ := strings.Cut(addr, ":")
	switch command {
	case "hello":
		return "*2\r\n$5\r\nproto\r\n:2\r\n"
	case "info":
		const info = "# Server\r\nrun_id:1\r\n# Keyspace\r\ndb0:keys=1,expires=1\r\n"
		return "$" + strconv.Itoa(len(info)) + "\r\n" + info + "\r\n"
	case "multi":
		return "+OK\r\n"
	case "time":
		return "+QUEUED\r\n"
	case "exec":
		return "*1\r\n*2\r\n$10\r\n1700000000\r\n$1\r\n0\r\n"
	case "scan":
		return "*2\r\n$1\r\n0\r\n*1\r\n$1\r\na\r\n"
	case "getrange", "get":
		return "$19\r\n4100000000000000000\r\n"
	case "pttl", "evalsha", "dbsize":
		return ":1\r\n"
	case "cluster":
		return "*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$9\r\n127.0.0.1\r\n:" + port + "\r\n"
	default:
		return "+OK\r\n"
	}
}
