package tables

import (
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// Library holds directories that are read when they are first asked for, and the messages that
// were compiled from them. It is safe for concurrent use.
type Library struct {
	files fs.FS
	names map[string]string // directory to file

	mu          sync.Mutex
	directories map[string]*Directory
	messages    map[string]*Message
}

// NewLibrary returns a library of files in the compact form. names tells the file of each
// directory.
func NewLibrary(files fs.FS, names map[string]string) *Library {
	return &Library{files: files, names: names, directories: make(map[string]*Directory), messages: make(map[string]*Message)}
}

// ErrNoDirectory is returned for a directory that the library does not have.
var ErrNoDirectory = errors.New("no such directory")

// Directory returns a directory by its name. An error is ErrNoDirectory or a file that cannot be
// read.
func (l *Library) Directory(name string) (*Directory, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.directory(name)
}

func (l *Library) directory(name string) (*Directory, error) {
	if d := l.directories[name]; d != nil {
		return d, nil
	}
	file, ok := l.names[name]
	if !ok {
		return nil, fmt.Errorf("%s: %w", name, ErrNoDirectory)
	}
	b, err := fs.ReadFile(l.files, file)
	if err != nil {
		return nil, fmt.Errorf("directory %s: %w", name, err)
	}
	d, err := Read(string(b))
	if err != nil {
		return nil, fmt.Errorf("directory %s: %w", name, err)
	}
	l.directories[name] = d
	return d, nil
}

// Message returns the table of a message type; services names the directories that have the
// segments that are not in its own. An error is ErrNoDirectory or ErrNoMessage.
func (l *Library) Message(directory, typ string, services ...string) (*Message, error) {
	key := directory + " " + typ
	for _, s := range services {
		key += " " + s
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.messages[key]; m != nil {
		return m, nil
	}
	d, err := l.directory(directory)
	if err != nil {
		return nil, err
	}
	var more []*Directory
	for _, s := range services {
		x, err := l.directory(s)
		if err != nil {
			return nil, err
		}
		more = append(more, x)
	}
	m, err := d.Compile(typ, more...)
	if err != nil {
		return nil, err
	}
	l.messages[key] = m
	return m, nil
}
