<?php
// SPDX-License-Identifier: Apache-2.0
// pool.php - makes a tenant's identity pool, and adds, lists and removes its people. Input: JSON with do (make, person, people or remove), folder and
// what goes into it; output: JSON with what came of it.
// Runs on the command line as the user of the provider (identity.php), which reads what is written here.

const FIRST_SECONDS = 7 * 86400; // so long the password is good that somebody is added with

function fail(string $why): never
{
    fwrite(STDERR, "$why\n");
    exit(1);
}

function save(string $path, array $what): void
{
    $draft = $path . '.' . bin2hex(random_bytes(6));
    $text = json_encode($what, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES);
    if (file_put_contents($draft, $text) !== strlen($text) || !rename($draft, $path)) {
        fail("cannot write $path");
    }
}

function load(string $path): ?array
{
    return json_decode((string) @file_get_contents($path), true); // null: there is none
}

function hash_of(string $email): string
{
    return hash('sha256', strtolower($email));
}

function make(array $in): array
{
    $folder = $in['folder'];
    foreach (['', '/people', '/codes', '/failures'] as $part) {
        is_dir($folder . $part) || mkdir($folder . $part, 0700);
    }
    $key = load("$folder/pool.json")['key'] ?? null;
    if (!$key && !openssl_pkey_export(openssl_pkey_new(['private_key_bits' => 2048, 'private_key_type' => OPENSSL_KEYTYPE_RSA]), $key)) {
        fail('no key can be made');
    }
    $client = ['client' => $in['client'], 'client_hash' => hash('sha256', $in['secret']), 'redirect' => $in['redirect']];
    save("$folder/pool.json", ['issuer' => $in['issuer'], 'title' => $in['title'], 'key' => $key] + $client);
    $first = load("$folder/people/" . hash_of($in['email']) . '.json') ? [] : add($in, []);
    return isset($first['isNoAddress']) ? fail('the contact has no e-mail address') : $first;
}

/** One more, or another password for one who is there. */
function add(array $in, array $more): array
{
    $file = $in['folder'] . '/people/' . hash_of($in['email']) . '.json';
    $had = load($file);
    if (!filter_var($in['email'], FILTER_VALIDATE_EMAIL)) {
        return ['isNoAddress' => true];
    }
    if (!$had && isset($in['most']) && count(glob($in['folder'] . '/people/*.json')) >= $in['most']) {
        return ['isFull' => true];
    }
    save($file, ['email' => $in['email'], 'name' => $in['name'], 'hash' => password_hash($in['password'], PASSWORD_BCRYPT),
        'sub' => $had['sub'] ?? bin2hex(random_bytes(16)), 'added' => $had['added'] ?? time()] + $more);
    @unlink($in['folder'] . '/failures/' . hash_of($in['email']));
    return ['isNew' => !$had];
}

function people(array $in): array
{
    $all = array_filter(array_map('load', glob($in['folder'] . '/people/*.json'))); // without those that have just gone
    usort($all, fn($a, $b) => strcmp(strtolower($a['email']), strtolower($b['email'])));
    return ['people' => array_map(fn($p) => ['email' => $p['email'], 'name' => $p['name'], 'added' => $p['added'] ?? 0], $all)];
}

function remove(array $in): array
{
    @unlink($in['folder'] . '/failures/' . hash_of($in['email']));
    return ['wasThere' => @unlink($in['folder'] . '/people/' . hash_of($in['email']) . '.json')];
}

umask(0077);
$in = json_decode(stream_get_contents(STDIN), true, 16, JSON_THROW_ON_ERROR);
if (is_dir($in['folder'])) { // one at a time, identity.php too: who was removed is not written again
    $lock = fopen($in['folder'] . '/lock', 'c');
    flock($lock, LOCK_EX);
}
$answer = match (true) {
    $in['do'] === 'make' => make($in),
    !is_file($in['folder'] . '/pool.json') => ['isNone' => true],
    $in['do'] === 'person' => add($in, ['until' => time() + FIRST_SECONDS]),
    $in['do'] === 'people' => people($in),
    $in['do'] === 'remove' => remove($in),
};
echo json_encode($answer, JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES), "\n";
