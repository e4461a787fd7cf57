// Node opens its debugger on 127.0.0.1:9229 when it gets SIGUSR1, for every user of this machine and without a password. A
// listener for the signal keeps it from that. Imported before everything else, for its effect.

process.on('SIGUSR1', () => {})
