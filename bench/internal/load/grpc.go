package load

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// call is a unary call of gRPC over HTTP/2 without TLS. Its headers are encoded in advance: as in the first
// request of a connection, and as in all others, which refer to the first.
type call struct{ first, later []byte }

// NewCall returns a call of a path such as "/package.Service/Method". mark, of twelve bytes, is where the
// message has the key's digits.
func NewCall(path string, message []byte, mark, text string) (Command, error) {
	var c call
	var block bytes.Buffer
	encoder := hpack.NewEncoder(&block)
	for _, to := range []*[]byte{&c.first, &c.later} {
		block.Reset()
		for _, f := range []hpack.HeaderField{
			{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: path},
			{Name: ":authority", Value: "localhost"}, {Name: "te", Value: "trailers"},
			{Name: "grpc-timeout", Value: "30S"}, {Name: "content-type", Value: "application/grpc"},
		} {
			if err := encoder.WriteField(f); err != nil {
				return Command{}, fmt.Errorf("load: headers: %w", err)
			}
		}
		*to = bytes.Clone(block.Bytes())
	}
	data := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))) // 0: not compressed
	command, err := RecordedCommand(append(data, message...), mark)
	command.call, command.text = &c, text
	return command, err
}

// grpc speaks gRPC. A request is a stream of its own.
type grpc struct {
	command *Command
	out     []byte
	control []byte // frames to send before the next request
	stream  uint32 // of the next request
	decoder *hpack.Decoder
	limited int // of streams whose trailers may be missing

	status, code string // of the headers that are decoded
	message      string
}

// window is more than a connection receives.
const window = 1 << 30

func newGRPC(command *Command) *grpc {
	g := &grpc{command: command, stream: 1}
	g.control = append(g.control, http2.ClientPreface...)
	g.control = appendFrame(g.control, http2.FrameSettings, 0, 0, 0)
	g.control = appendFrame(g.control, http2.FrameWindowUpdate, 0, 0, 4)
	g.control = binary.BigEndian.AppendUint32(g.control, window)
	g.decoder = hpack.NewDecoder(4096, g.header)
	return g
}

const frameHeaderBytes = 9

// appendFrame appends a frame's header; size is that of what follows.
func appendFrame(b []byte, kind http2.FrameType, flags http2.Flags, stream uint32, size int) []byte {
	b = append(b, byte(size>>16), byte(size>>8), byte(size), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, stream)
}

func (g *grpc) fill(requests int, keys sampler) []byte {
	g.out = append(g.out[:0], g.control...)
	g.control = g.control[:0]
	data := g.command.wire
	for range requests {
		block := g.command.call.later
		if g.stream == 1 {
			block = g.command.call.first
		}
		g.out = appendFrame(g.out, http2.FrameHeaders, http2.FlagHeadersEndHeaders, g.stream, len(block))
		g.out = append(g.out, block...)
		g.out = appendFrame(g.out, http2.FrameData, http2.FlagDataEndStream, g.stream, len(data))
		g.out = append(g.out, data...)
		g.command.put(g.out[len(g.out)-len(data):], keys.next())
		g.stream += 2
	}
	return g.out
}

func (g *grpc) feed(b []byte) (n counted, used int, err error) {
	for len(b)-used >= frameHeaderBytes {
		head := b[used : used+frameHeaderBytes]
		size := int(head[0])<<16 | int(head[1])<<8 | int(head[2])
		if len(b)-used < frameHeaderBytes+size {
			break
		}
		payload := b[used+frameHeaderBytes : used+frameHeaderBytes+size]
		used += frameHeaderBytes + size
		if err := g.frame(http2.FrameType(head[3]), http2.Flags(head[4]), payload, &n); err != nil {
			return n, used, err
		}
	}
	return n, used, nil
}

var errNoStatus = errors.New("not a reply: a stream of gRPC ends without a status")

// frame reads one frame. Frames of flow control do not count, as a connection sends little.
func (g *grpc) frame(kind http2.FrameType, flags http2.Flags, payload []byte, n *counted) error {
	switch kind {
	case http2.FrameHeaders:
		return g.headers(flags, payload, n)
	case http2.FrameData:
		const prefix, field1 = 5, 1 << 3
		if len(payload) > prefix+1 && payload[prefix] == field1 && payload[prefix+1] == g.command.limited {
			g.limited++
		}
		if flags.Has(http2.FlagDataEndStream) {
			return errNoStatus
		}
	case http2.FrameSettings:
		if !flags.Has(http2.FlagSettingsAck) {
			g.control = appendFrame(g.control, http2.FrameSettings, http2.FlagSettingsAck, 0, 0)
		}
	case http2.FramePing:
		if !flags.Has(http2.FlagPingAck) {
			g.control = appendFrame(g.control, http2.FramePing, http2.FlagPingAck, 0, len(payload))
			g.control = append(g.control, payload...)
		}
	case http2.FrameGoAway, http2.FrameRSTStream, http2.FrameContinuation:
		return fmt.Errorf("%w: a frame %s of HTTP/2: %q", errErrorReply, kind, payload)
	default: // nothing to do
	}
	return nil
}

// headers reads the headers of a reply, or its trailers.
func (g *grpc) headers(flags http2.Flags, payload []byte, n *counted) error {
	if !flags.Has(http2.FlagHeadersEndHeaders) || flags.Has(http2.FlagHeadersPadded) || flags.Has(http2.FlagHeadersPriority) {
		return fmt.Errorf("not a reply: flags %x of headers", flags)
	}
	g.status, g.code, g.message = "", "", ""
	if _, err := g.decoder.Write(payload); err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	if err := g.decoder.Close(); err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	switch {
	case g.status != "" && g.status != "200", g.code != "" && g.code != "0":
		return fmt.Errorf("%w: HTTP %s, gRPC %s: %s", errErrorReply, g.status, g.code, g.message)
	case !flags.Has(http2.FlagHeadersEndStream):
	case g.code == "":
		return errNoStatus
	default:
		n.replies++
		n.limited, g.limited = n.limited+g.limited, 0
	}
	return nil
}

func (g *grpc) header(f hpack.HeaderField) {
	switch f.Name {
	case ":status":
		g.status = f.Value
	case "grpc-status":
		g.code = f.Value
	case "grpc-message":
		g.message = f.Value
	}
}
