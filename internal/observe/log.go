// Package observe makes the hub visible to those who run it: the logger in its two forms and the
// Prometheus metrics of CONTRACTS.
package observe

import (
	"fmt"
	"io"
	"os"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// NewLogger makes the hub's logger. Level is debug, info, warn or error; format is json, text, or
// auto, which is text on a terminal and else json. Each line holds one event name and its fields;
// times are RFC 3339 in UTC. Payload never belongs into a log.
func NewLogger(level, format string, w io.Writer) (*zap.Logger, error) {
	var l zapcore.Level
	switch level {
	case "", "info":
		l = zapcore.InfoLevel
	case "debug":
		l = zapcore.DebugLevel
	case "warn":
		l = zapcore.WarnLevel
	case "error":
		l = zapcore.ErrorLevel
	default:
		return nil, fmt.Errorf("log level %q is not known; allowed: debug, info, warn, error", level)
	}
	c := zap.NewProductionEncoderConfig()
	c.TimeKey, c.MessageKey, c.EncodeTime = "at", "event", utcTime
	c.EncodeDuration = zapcore.StringDurationEncoder
	var enc zapcore.Encoder
	switch {
	case format == "json", (format == "auto" || format == "") && !IsTerminal(w):
		enc = zapcore.NewJSONEncoder(c)
	case format == "text", format == "auto", format == "":
		c.ConsoleSeparator = "  "
		c.EncodeLevel = zapcore.CapitalLevelEncoder
		enc = zapcore.NewConsoleEncoder(c)
	default:
		return nil, fmt.Errorf("log format %q is not known; allowed: auto, json, text", format)
	}
	return zap.New(zapcore.NewCore(enc, zapcore.Lock(zapcore.AddSync(w)), l), zap.AddStacktrace(zapcore.DPanicLevel)), nil
}

func utcTime(t time.Time, enc zapcore.PrimitiveArrayEncoder) {
	enc.AppendString(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

// IsTerminal reports whether w is a terminal, so that colours, progress and text for people make
// sense.
func IsTerminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0 && f.Name() != os.DevNull
}
