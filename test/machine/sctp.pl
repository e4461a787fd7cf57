# A whole SCTP association: `sctp.pl serve NAME PORT`, or `sctp.pl ask HOST PORT`, which prints who answered. Node has no SCTP.
use strict;
use Socket;
my ($kind, $first, $port) = @ARGV;
socket(my $socket, PF_INET, SOCK_STREAM, 132) or die "socket: $!\n";
if ($kind eq 'serve') {
  bind($socket, sockaddr_in($port, INADDR_ANY)) or die "bind: $!\n";
  listen($socket, 16) or die "listen: $!\n";
  while (accept(my $client, $socket)) {
    syswrite($client, $first);
    close($client);
  }
} else {
  alarm 20;
  connect($socket, sockaddr_in($port, inet_aton($first))) or die "connect: $!\n";
  sysread($socket, my $text, 100);
  print "$text\n";
}
