// Command bench runs the benchmarks and prints one table. Beside each figure stands its ratio to a
// yardstick that was measured in the same run on the same machine, so that figures of two machines
// can be compared: for throughput the speed of SHA-256, for the rest the time of an RSA signature
// of 2,048 bits. A benchmark that brings a reference of its own shows how many times its speed it
// reaches.
package main

import (
	"bufio"
	"context"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run() error {
	benchtime := flag.String("benchtime", "2s", "time of each benchmark, or a number of runs like 1x")
	pattern := flag.String("bench", ".", "which benchmarks")
	flag.Parse()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = []string{"./..."}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	first, err := measureYardstick()
	if err != nil {
		return err
	}
	args := append([]string{"test", "-run", "^$", "-bench", *pattern, "-benchmem", "-benchtime", *benchtime}, packages...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("run the benchmarks: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("run the benchmarks: %w", err)
	}
	results, rest, err := parse(io.TeeReader(out, progress{os.Stderr}))
	if err != nil {
		return err
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("run the benchmarks: %w\n%s", err, rest)
	}
	last, err := measureYardstick()
	if err != nil {
		return err
	}
	return table(os.Stdout, results, first.mean(last))
}

// progress lets a person see that something happens; standard output has the table alone.
type progress struct{ w io.Writer }

// Write implements io.Writer.
func (p progress) Write(b []byte) (int, error) {
	for line := range strings.Lines(string(b)) {
		if name, _, ok := strings.Cut(line, " "); ok && strings.HasPrefix(name, "Benchmark") {
			_, _ = fmt.Fprintln(p.w, strings.TrimSpace(name)) // only progress
		}
	}
	return len(b), nil
}

// yardstick is what this machine does with work that never changes.
type yardstick struct {
	hash float64       // SHA-256 on one core, MB/s
	sign time.Duration // one RSA signature of 2,048 bits
}

func (y yardstick) mean(o yardstick) yardstick {
	return yardstick{hash: (y.hash + o.hash) / 2, sign: (y.sign + o.sign) / 2}
}

func measureYardstick() (yardstick, error) {
	const enough = 300 * time.Millisecond
	block := make([]byte, 1<<20)
	var y yardstick
	n, begin := 0, time.Now()
	for time.Since(begin) < enough {
		sha256.Sum256(block)
		n++
	}
	y.hash = float64(n*len(block)) / time.Since(begin).Seconds() / 1e6
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return y, fmt.Errorf("yardstick: %w", err)
	}
	digest := sha256.Sum256(block)
	n, begin = 0, time.Now()
	for time.Since(begin) < enough {
		if _, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:]); err != nil {
			return y, fmt.Errorf("yardstick: %w", err)
		}
		n++
	}
	y.sign = time.Since(begin) / time.Duration(n)
	return y, nil
}

// result is one line of the go tool.
type result struct {
	pkg, name string
	values    map[string]float64 // by unit
}

// parse reads the output of go test; rest is what is no result, for the message of a failure.
func parse(r io.Reader) (results []result, rest string, err error) {
	var other strings.Builder
	pkg := ""
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if p, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = p
			continue
		}
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			other.WriteString(line + "\n")
			continue
		}
		res := result{pkg: pkg, name: bare(f[0]), values: map[string]float64{}}
		for i := 2; i+1 < len(f); i += 2 {
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				return nil, "", fmt.Errorf("read %q: %w", line, err)
			}
			res.values[f[i+1]] = v
		}
		results = append(results, res)
	}
	if err := lines.Err(); err != nil {
		return nil, "", fmt.Errorf("read the benchmarks: %w", err)
	}
	return results, other.String(), nil
}

// bare takes the number of processors off a name.
func bare(name string) string {
	if i := strings.LastIndexByte(name, '-'); i > 0 {
		if _, err := strconv.Atoi(name[i+1:]); err == nil {
			return name[:i]
		}
	}
	return name
}

// ownReference is the unit under which a benchmark reports how many times its own reference's
// speed it reaches.
const ownReference = "x-reference"

func table(w io.Writer, results []result, y yardstick) error {
	cols := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintln(cols, "package\tbenchmark\ttime\tMB/s\tof SHA-256\ttimes RSA\tof own reference\tB/op\tallocs/op\t")
	for _, r := range results {
		speed, share, times, own := "", "", "", ""
		if v, ok := r.values["MB/s"]; ok {
			speed, share = fmt.Sprintf("%.1f", v), fmt.Sprintf("%.2f", v/y.hash)
		} else {
			times = fmt.Sprintf("%.2f", r.values["ns/op"]/float64(y.sign.Nanoseconds()))
		}
		if v, ok := r.values[ownReference]; ok {
			own = fmt.Sprintf("%.2f", v)
		}
		_, _ = fmt.Fprintf(cols, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%.0f\t%.0f\t\n", r.pkg[strings.LastIndexByte(r.pkg, '/')+1:], r.name,
			time.Duration(r.values["ns/op"]).Round(10*time.Nanosecond), speed, share, times, own, r.values["B/op"], r.values["allocs/op"])
	}
	if err := cols.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	_, err := fmt.Fprintf(w, "\nyardstick of this run: SHA-256 %.0f MB/s, RSA-2048 signature %s; %d benchmarks\n", y.hash, y.sign.Round(time.Microsecond), len(results))
	if err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}
