<?php
// SPDX-License-Identifier: Apache-2.0
// compile.php - compiles all of WordPress into opcache's file cache, so that tasks start with code that is ready. Runs nothing of it.
// Input: JSON with code, a folder. Some files declare what others do, which is an error only when they are loaded together.

$in = json_decode(stream_get_contents(STDIN), true, 16, JSON_THROW_ON_ERROR);
$files = new RecursiveIteratorIterator(new RecursiveDirectoryIterator($in['code'], FilesystemIterator::FOLLOW_SYMLINKS));
$skip = ['#/noop\.php$#', '#/js/tinymce/#'];
$count = 0;
foreach ($files as $file) {
    $path = $file->getRealPath();
    if ($file->getExtension() === 'php' && preg_replace($skip, '', $path) === $path && opcache_compile_file($path)) {
        $count++;
    }
}
echo $count, "\n";
